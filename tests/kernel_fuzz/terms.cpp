#include "kernel_fuzz/terms.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace tessera::testing {
namespace {

double last(const Shape& shape) {
  return shape.empty() ? 1 : static_cast<double>(shape.back());
}

// How many elements are summed for one of the output, where each of the input goes to one sum.
int64_t reduced(const Tensor& input, const Tensor& output) {
  return output.size() == 0 ? 1 : std::max<int64_t>(1, input.size() / output.size());
}

// Of the axis that the node names.
int64_t extent_along(const Node& node, const Shape& shape) {
  const int64_t axis = node.attributes().integer("axis");
  return shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)];
}

// The largest difference between numbers of one row of the last axis.
double largest_range(const Tensor& rows, int64_t axis) {
  const Shape& shape = rows.shape();
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t extent = shape[static_cast<size_t>(axis)];
  std::unordered_map<int64_t, std::pair<double, double>> bounds;
  double result = 1;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const double value = rows.at(i);
    if (!std::isfinite(value)) continue;
    auto& [low, high] =
        bounds.try_emplace(i / (extent * inner) * inner + i % inner, value, value).first->second;
    low = std::min(low, value);
    high = std::max(high, value);
    result = std::max(result, high - low);
  }
  return result;
}

}  // namespace

double largest(const Tensor& tensor) {
  double result = 0;
  for (const double value : tensor.to_doubles()) {
    if (std::isfinite(value)) result = std::max(result, std::abs(value));
  }
  return result;
}

std::optional<Problem> problem_of(const Node& node, const Inputs& inputs,
                                  const std::vector<Tensor>& outputs) {
  const std::string& name = node.operator_name();
  const auto elements = [&](size_t input) { return inputs[input]->size(); };
  const auto count = [](int64_t all, double part) {
    return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(all) / std::max(part, 1.0)));
  };
  if (name == "reduce_sum") return Problem{reduced(*inputs[0], outputs[0]), largest(*inputs[0])};
  if (name == "reduce_mean") {
    const int64_t terms = reduced(*inputs[0], outputs[0]);
    return Problem{terms, largest(*inputs[0]) / static_cast<double>(terms)};
  }
  if (name == "reduce_product") return Problem{reduced(*inputs[0], outputs[0]), 0};
  if (name == "matmul") {
    const Shape& a = inputs[0]->shape();
    const int64_t depth = node.attributes().boolean("transpose_a") ? a[a.size() - 2] : a.back();
    return Problem{std::max<int64_t>(depth, 1), largest(*inputs[0]) * largest(*inputs[1])};
  }
  const double product = inputs.size() > 1 ? largest(*inputs[0]) * largest(*inputs[1]) : 0;
  if (name == "rotary_embedding")
    return Problem{2, largest(*inputs[0]) * std::max(largest(*inputs[1]), largest(*inputs[2]))};
  if (name == "convolution") {
    const int64_t terms = count(elements(1), static_cast<double>(inputs[1]->shape()[0]));
    const double bias = inputs.size() > 2 ? largest(*inputs[2]) : 0;
    return Problem{terms, product + bias / static_cast<double>(terms)};
  }
  if (name == "convolution_data_gradient" || name == "transposed_convolution") {
    const auto groups = static_cast<double>(node.attributes().integer("groups"));
    return Problem{count(elements(1), last(inputs[1]->shape()) * groups), product};
  }
  if (name == "convolution_weight_gradient")
    return Problem{count(elements(1), last(inputs[1]->shape())), product};
  if (name == "average_pool" || name == "average_pool_gradient" || name == "max_pool_gradient")
    return Problem{element_count(node.attributes().integers("window")), largest(*inputs[0])};
  if (name == "scatter_add" || name == "combine_rows")
    return Problem{std::max<int64_t>(elements(0), 1), largest(*inputs[1])};
  if (name == "cumulative_sum")
    return Problem{std::max<int64_t>(extent_along(node, inputs[0]->shape()), 1), largest(*inputs[0])};
  if (name == "softmax" || name == "log_softmax") {
    const int64_t axis = node.attributes().integer("axis");
    const int64_t extent = extent_along(node, inputs[0]->shape());
    return Problem{std::max<int64_t>(extent, 1), name == "softmax" ? 1 : largest_range(*inputs[0], axis)};
  }
  if (name == "cross_entropy") return Problem{inputs[0]->shape()[1], largest_range(*inputs[0], 1)};
  if (name == "cross_entropy_gradient") return Problem{inputs[0]->shape()[1], largest(*inputs[2])};
  return std::nullopt;
}

}  // namespace tessera::testing
