#include "onnx/tensors.h"

#include <charconv>
#include <cstring>

#include "tessera/base/elements.h"
#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/graph/tensor_type.h"

#include "onnx/types.h"

namespace tessera::onnx {
namespace {

constexpr int kDeepestValue = 16;

Shape shape_of(const ::onnx::TensorProto& tensor) {
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  require(shape.size() <= kMaximumRank, ErrorCode::invalid_file,
          "tensor '{}' has {} axes, at most {} are legal", tensor.name(), shape.size(), kMaximumRank);
  for (const int64_t extent : shape)
    require(extent >= 0, ErrorCode::invalid_file, "tensor '{}' has the shape {}", tensor.name(),
            to_string(shape));
  return shape;
}

void require_count(const ::onnx::TensorProto& tensor, int64_t wanted, int64_t given, const char* unit) {
  require(wanted == given, ErrorCode::invalid_file, "tensor '{}' holds {} {}, its type and shape want {}",
          tensor.name(), given, unit, wanted);
}

uint64_t number_of(const ::onnx::TensorProto& tensor, const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  require(error == std::errc() && end == text.data() + text.size(), ErrorCode::invalid_file,
          "tensor '{}': '{}' is no number of bytes", tensor.name(), text);
  return number;
}

Tensor external_tensor(const ::onnx::TensorProto& proto, DataType type, Shape shape,
                       const ExternalFolder& folder) {
  std::string location;
  uint64_t offset = 0;
  const int64_t bytes = tensor_bytes(type, shape);
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number_of(proto, entry.value());
    if (entry.key() == "length")
      require_count(proto, bytes, static_cast<int64_t>(number_of(proto, entry.value())), "bytes");
  }
  folder.check(location, offset, static_cast<uint64_t>(bytes));
  Tensor tensor(type, std::move(shape));
  folder.read(location, offset, {static_cast<std::byte*>(tensor.raw()), tensor.bytes()});
  return tensor;
}

// Elements of narrow types come as the bits of one in each number, those of less than a byte as bytes.
template <typename Field>
Tensor from_numbers(const ::onnx::TensorProto& proto, const Field& field, DataType type, Shape shape) {
  const int64_t count = is_packed(type) ? tensor_bytes(type, shape) : element_count(shape);
  require_count(proto, count * (is_complex(type) ? 2 : 1), field.size(), "numbers");
  Tensor tensor(type, std::move(shape));
  const size_t width = is_packed(type) ? 1 : size_of(type) / (is_complex(type) ? 2 : 1);
  auto* target = static_cast<std::byte*>(tensor.raw());
  for (const auto number : field) {
    std::memcpy(target, &number, width);  // the low bytes come first
    target += width;
  }
  return tensor;
}

Tensor from_fields(const ::onnx::TensorProto& proto, DataType type, Shape shape) {
  switch (type) {
    case DataType::fp32:
    case DataType::complex64:
      return from_numbers(proto, proto.float_data(), type, std::move(shape));
    case DataType::fp64:
    case DataType::complex128:
      return from_numbers(proto, proto.double_data(), type, std::move(shape));
    case DataType::int64:
      return from_numbers(proto, proto.int64_data(), type, std::move(shape));
    case DataType::uint32:
    case DataType::uint64:
      return from_numbers(proto, proto.uint64_data(), type, std::move(shape));
    default:
      return from_numbers(proto, proto.int32_data(), type, std::move(shape));
  }
}

void check_booleans(const ::onnx::TensorProto& proto, Tensor& tensor) {
  if (tensor.data_type() != DataType::boolean) return;
  auto* bytes = static_cast<uint8_t*>(tensor.raw());
  for (size_t i = 0; i < tensor.bytes(); ++i)
    require(bytes[i] <= 1, ErrorCode::invalid_file, "tensor '{}': element {} is no boolean", proto.name(), i);
}

}  // namespace

std::filesystem::path ExternalFolder::resolve(const std::string& location) const {
  require(!folder_.empty(), ErrorCode::invalid_file, "external data '{}': a model without a folder has none",
          location);
  const std::filesystem::path relative(location);
  bool stays = !location.empty() && relative.is_relative() && location.find('\0') == std::string::npos;
  for (const auto& part : relative) stays = stays && part != "..";
  require(stays, ErrorCode::invalid_file, "external data '{}' is outside the model's folder", location);
  // Links may lead out of it all the same.
  std::error_code error;
  const auto inside = std::filesystem::weakly_canonical(folder_, error);
  auto target = std::filesystem::weakly_canonical(folder_ / relative, error);
  const auto [folder_end, target_at] =
      std::mismatch(inside.begin(), inside.end(), target.begin(), target.end());
  require(folder_end == inside.end(), ErrorCode::invalid_file,
          "external data '{}' is outside the model's folder", location);
  return target;
}

void ExternalFolder::check(const std::string& location, uint64_t offset, uint64_t bytes) const {
  const std::filesystem::path path = resolve(location);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  require(!error, ErrorCode::io, "external data '{}': {}", path.string(), error.message());
  require(offset <= size && bytes <= size - offset, ErrorCode::invalid_file,
          "external data '{}': {} bytes from {} on are wanted, the file has {}", location, bytes, offset,
          size);
}

void ExternalFolder::read(const std::string& location, uint64_t offset, std::span<std::byte> target) const {
  if (!target.empty()) MappedFile(resolve(location)).copy(offset, target);
}

program::Item item_of(const ::onnx::TensorProto& proto, const ExternalFolder& folder) {
  Shape shape = shape_of(proto);
  require(!proto.has_segment(), ErrorCode::unsupported, "tensor '{}' is given in segments", proto.name());
  if (proto.data_type() == kTextCode) {
    require_count(proto, element_count(shape), proto.string_data_size(), "texts");
    return program::TextTensor{std::move(shape), {proto.string_data().begin(), proto.string_data().end()}};
  }
  const DataType type = data_type_of(proto.data_type());
  Tensor tensor;
  if (proto.data_location() == ::onnx::TensorProto::EXTERNAL) {
    tensor = external_tensor(proto, type, std::move(shape), folder);
  } else if (proto.has_raw_data()) {
    const std::string& raw = proto.raw_data();
    require_count(proto, element_count(shape) == 0 ? 0 : tensor_bytes(type, shape), std::ssize(raw), "bytes");
    tensor = Tensor(type, std::move(shape));
    if (!raw.empty()) std::memcpy(tensor.raw(), raw.data(), raw.size());
  } else {
    tensor = from_fields(proto, type, std::move(shape));
  }
  check_booleans(proto, tensor);
  return tensor;
}

program::Item item_of(const ::onnx::SparseTensorProto& proto) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;  // of what a few bytes of the file may ask for
  const program::Item values_item = item_of(proto.values());
  const program::Item indices_item = item_of(proto.indices());
  const Tensor* values = values_item.tensor();
  const Tensor* indices = indices_item.tensor();
  Shape shape(proto.dims().begin(), proto.dims().end());
  const auto rank = std::ssize(shape);
  require(values != nullptr && indices != nullptr && indices->data_type() == DataType::int64 && rank <= 64,
          ErrorCode::invalid_file, "sparse tensor '{}' has no numbers or no indices", proto.values().name());
  require(tensor_bytes(values->data_type(), shape) <= kMostBytes, ErrorCode::invalid_file,
          "sparse tensor '{}' of shape {} is too large to be made dense", proto.values().name(),
          to_string(shape));
  const bool linear = indices->shape().size() == 1;
  require(indices->size() == values->size() * (linear ? 1 : rank), ErrorCode::invalid_file,
          "sparse tensor '{}' has {} values and {} indices", proto.values().name(), values->size(),
          indices->size());
  Tensor dense(values->data_type(), shape);
  const std::vector<int64_t> strides = row_major_strides(shape);
  const auto at = indices->data<int64_t>();
  for (int64_t i = 0; i < values->size(); ++i) {
    int64_t place = linear ? at[static_cast<size_t>(i)] : 0;
    for (int64_t axis = 0; !linear && axis < rank; ++axis) {
      const int64_t index = at[static_cast<size_t>(i * rank + axis)];
      require(index >= 0 && index < shape[static_cast<size_t>(axis)], ErrorCode::invalid_file,
              "sparse tensor '{}': index {} is outside its shape", proto.values().name(), index);
      place += index * strides[static_cast<size_t>(axis)];
    }
    require(place >= 0 && place < dense.size(), ErrorCode::invalid_file,
            "sparse tensor '{}': index {} is outside its shape", proto.values().name(), place);
    copy_run(dense.data_type(), values->raw(), i, dense.raw(), place, 1);
  }
  return dense;
}

program::Item item_of(const ::onnx::SequenceProto& proto, int depth) {
  require(depth < kDeepestValue, ErrorCode::invalid_file, "values within values, more than {} deep",
          kDeepestValue);
  program::Item::Sequence items;
  switch (proto.elem_type()) {
    case ::onnx::SequenceProto::TENSOR:
      for (const auto& tensor : proto.tensor_values()) items.push_back(item_of(tensor));
      break;
    case ::onnx::SequenceProto::SEQUENCE:
      for (const auto& sequence : proto.sequence_values()) items.push_back(item_of(sequence, depth + 1));
      break;
    case ::onnx::SequenceProto::OPTIONAL:
      for (const auto& optional : proto.optional_values()) items.push_back(item_of(optional, depth + 1));
      break;
    default:
      fail(ErrorCode::unsupported, "sequence '{}' holds maps or sparse tensors", proto.name());
  }
  return items;
}

program::Item item_of(const ::onnx::OptionalProto& proto, int depth) {
  require(depth < kDeepestValue, ErrorCode::invalid_file, "values within values, more than {} deep",
          kDeepestValue);
  if (proto.has_tensor_value()) return item_of(proto.tensor_value());
  if (proto.has_sequence_value()) return item_of(proto.sequence_value(), depth + 1);
  if (proto.has_optional_value()) return item_of(proto.optional_value(), depth + 1);
  return {};
}

}  // namespace tessera::onnx
