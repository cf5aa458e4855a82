#include "onnx/declarations.h"

#include "tessera/base/error.h"
#include "tessera/onnx/onnx.h"

#include "onnx/types.h"

namespace tessera::onnx {

std::string symbol_of(const std::string& name) {
  std::string symbol;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    symbol += letter || (digit && !symbol.empty()) ? c : '_';
  }
  return symbol;
}

namespace {

constexpr int kDeepestType = 16;

TensorType tensor_type_of(const ::onnx::TypeProto::Tensor& type, const std::string& name) {
  TensorType result{data_type_of(type.elem_type()), {}};
  require(type.shape().dim_size() <= static_cast<int>(kMaximumRank), ErrorCode::invalid_file,
          "'{}' has {} axes, at most {} are legal", name, type.shape().dim_size(), kMaximumRank);
  for (const auto& dimension : type.shape().dim()) {
    const int axis = static_cast<int>(result.shape.size());
    if (dimension.has_dim_value() && dimension.dim_value() >= 0) {
      result.shape.emplace_back(dimension.dim_value());
    } else {
      const std::string symbol = symbol_of(dimension.dim_param());
      result.shape.push_back(
          Dimension::symbol(symbol.empty() ? symbol_of(name) + "_" + std::to_string(axis) : symbol));
    }
  }
  return result;
}

std::string text_of(const ::onnx::TypeProto& type, const std::string& name, int depth = 0) {
  require(depth < kDeepestType, ErrorCode::invalid_file, "'{}': types within types, more than {} deep", name,
          kDeepestType);
  if (type.has_tensor_type()) {
    if (type.tensor_type().elem_type() == kTextCode) return "text";
    if (!find_data_type(type.tensor_type().elem_type())) return "a tensor";
    if (!type.tensor_type().has_shape())
      return std::string(to_string(data_type_of(type.tensor_type().elem_type())));
    return to_string(tensor_type_of(type.tensor_type(), name));
  }
  if (type.has_sequence_type())
    return "sequence of " + text_of(type.sequence_type().elem_type(), name, depth + 1);
  if (type.has_optional_type())
    return "optional " + text_of(type.optional_type().elem_type(), name, depth + 1);
  return "of unknown type";
}

}  // namespace

program::Declaration declaration_of(const ::onnx::ValueInfoProto& value, const std::string& name) {
  program::Declaration declaration{name, text_of(value.type(), value.name()), std::nullopt};
  const auto& type = value.type();
  if (type.has_tensor_type() && type.tensor_type().has_shape() &&
      find_data_type(type.tensor_type().elem_type()))
    declaration.tensor = tensor_type_of(type.tensor_type(), value.name());
  return declaration;
}

}  // namespace tessera::onnx
