#include "device/cpu/batch_norm.h"

#include <cmath>

#include "tessera/base/error.h"

#include "device/cpu/parallel.h"

namespace tessera::cpu {

ActivationRows::ActivationRows(const TensorType& tensor) : type(tensor.data_type) {
  channels = tensor.static_shape().back();
  rows = tensor.element_count() / channels;
  parts = std::min(part_count(rows * channels), rows);
}

bool ActivationRows::stream() const {
  // Whole rows of whole vectors, so that every store is aligned.
  return type == DataType::fp32 && channels % 16 == 0 && rows * channels * 4 >= kStreamBytes;
}

float normalising_factor(float scale, float variance, double epsilon) {
  return static_cast<float>(static_cast<double>(scale) / std::sqrt(static_cast<double>(variance) + epsilon));
}

void add_parts(int64_t parts, int64_t channels, double* sums) {
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < 2 * channels; ++i) sums[i] += sums[part * 2 * channels + i];
  }
}

std::optional<size_t> input_of(const Node& node, const Value* value) {
  if (node.body() != nullptr) {
    return value->producer() == nullptr ? std::optional(value->index()) : std::nullopt;
  }
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i) == value) return i;
  }
  return std::nullopt;
}

std::optional<size_t> output_of(const Node& node, const Value* value) {
  if (node.body() == nullptr) return value->index();
  const auto& outputs = node.body()->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].value == value) return i;
  }
  return std::nullopt;
}

size_t required_input(const Node& node, const Value* value) {
  const std::optional<size_t> index = input_of(node, value);
  require(index.has_value(), ErrorCode::unsupported, "'{}' is made inside the body", value->name());
  return *index;
}

const Node& main_node(const Node& node, std::string_view operator_name) {
  if (node.body() == nullptr) return node;
  const Node* main = nullptr;
  for (const auto& inner : node.body()->nodes()) {
    if (inner->operator_name() != operator_name) continue;
    require(main == nullptr, ErrorCode::unsupported, "the body holds several nodes of operator {}",
            operator_name);
    main = inner.get();
  }
  require(main != nullptr, ErrorCode::unsupported, "the body holds no node of operator {}", operator_name);
  return *main;
}

void check_batch_norm_types(const Value& x, const Value& scale) {
  const DataType type = x.data_type();
  require(type == DataType::fp32 || type == DataType::fp16 || type == DataType::bf16, ErrorCode::unsupported,
          "no loop for {}", to_string(type));
  require(scale.data_type() == DataType::fp32, ErrorCode::unsupported, "no loop for statistics in {}",
          to_string(scale.data_type()));
  require(x.type().element_count() > 0, ErrorCode::unsupported, "a tensor without elements");
}

}  // namespace tessera::cpu
