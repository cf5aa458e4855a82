#include "support/operator_tolerance.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/rounding.h"
#include "tessera/graph/operator.h"

namespace tessera::testing {
namespace {

double largest_of(const Tensor& tensor) {
  double result = 0;
  for (double value : tensor.to_doubles())
    if (std::isfinite(value)) result = std::max(result, std::abs(value));
  return result;
}

int64_t elements_of(const Value* value) {
  return value->type().element_count();
}

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

// How many windows hold one element of the image: steps of a stride fall on every s / gcd(s, d)-th position.
int64_t overlapping_windows(const Shape& window, const Attributes& attributes) {
  int64_t count = 1;
  for (size_t axis = 0; axis < window.size(); ++axis) {
    const auto option = [&](const char* name) {
      return attributes.contains(name) && !attributes.integers(name).empty() ? attributes.integers(name)[axis]
                                                                             : 1;
    };
    const int64_t stride = option("strides");
    count *= quotient_rounded_up(window[axis], stride / std::gcd(stride, option("dilations")));
  }
  return count;
}

Shape window_of(const Shape& weight) {
  return {weight.begin() + 1, weight.end() - 1};
}

double largest_input(const Node& node, const std::vector<Tensor>& inputs) {
  double result = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (is_floating(node.input(i)->data_type())) result = std::max(result, largest_of(inputs[i]));
  return result;
}

// What dropout leaves of attention's weights is larger than they were.
double dropout_growth(const Node& node) {
  return node.attributes().contains("rate") ? 1 / (1 - node.attributes().real("rate")) : 1;
}

bool is_attention_gradient(const std::string& name) {
  return name.ends_with("attention_gradient") || name == "attention_bias_gradient";
}

// m of tolerance.h.
double magnitude_of(const Node& node, const std::vector<Tensor>& inputs, double largest_result) {
  const std::string& name = node.operator_name();
  switch (node.schema().operator_class) {
    case OperatorClass::contraction:
      // The gradients of attention multiply three of its operands; what comes out is of their size.
      if (is_attention_gradient(name))
        return dropout_growth(node) * std::max(1.0, largest_of(inputs[0])) *
               std::max(1.0, largest_of(inputs[3])) * std::max(largest_of(inputs[1]), largest_of(inputs[2]));
      if (name.ends_with("attention"))
        return dropout_growth(node) * std::max(1.0, largest_of(inputs[2])) *
               std::max(1.0, largest_of(inputs[0]) * largest_of(inputs[1]));
      // A bias of its own is one term more.
      return std::max(largest_of(inputs[0]) * largest_of(inputs[1]),
                      inputs.size() > 2 ? largest_of(inputs[2]) : 0);
    case OperatorClass::indexing:
      return name == "scatter_add" || name == "combine_rows" ? largest_of(inputs[1]) : largest_of(inputs[0]);
    case OperatorClass::reduction:
    case OperatorClass::pooling:
      return largest_of(inputs[0]);
    default:
      return std::max(largest_input(node, inputs), largest_result);
  }
}

// Intermediates of these are no larger than inputs and results; of others the inputs say it all.
std::vector<Tensor> results_where_they_matter(const Node& node, const std::vector<Tensor>& inputs) {
  const OperatorClass kind = node.schema().operator_class;
  if (kind != OperatorClass::elementwise && kind != OperatorClass::normalization) return {};
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return run_reference(node, pointers);
}

bool selects(const std::string& name) {
  return name == "reduce_max" || name == "reduce_min" || name == "max_pool" || name == "gather" ||
         name == "set_rows" || name == "top_k" || name == "argmax" || name == "one_hot";
}

// x - max, up to where the exponential is 0, or a logit beside the largest.
double spread_of(const Tensor& logits) {
  return std::min(2 * largest_of(logits), 104.0);
}

}  // namespace

int64_t summed_terms(const Node& node) {
  const std::string& name = node.operator_name();
  const Attributes& attributes = node.attributes();
  if (node.inputs().empty()) return 1;
  const Shape x = shape_of(node.input(0));
  if (name == "matmul") return attributes.boolean("transpose_a") ? x[x.size() - 2] : x.back();
  if (name == "convolution")
    return elements_of(node.input(1)) / shape_of(node.input(1))[0] + (node.inputs().size() > 2 ? 1 : 0);
  if (name == "convolution_data_gradient" || name == "transposed_convolution") {
    const Shape weight = shape_of(node.input(1));
    return weight[0] / attributes.integer("groups") * overlapping_windows(window_of(weight), attributes);
  }
  if (name == "convolution_weight_gradient")
    return elements_of(node.input(1)) / shape_of(node.input(1)).back();
  if (name.ends_with("attention")) return shape_of(node.input(1))[x.size() - 2] + x.back();
  if (is_attention_gradient(name)) {
    const Shape q = shape_of(node.input(1));
    const Shape k = shape_of(node.input(2));
    // Neighboring heads of queries may share their keys.
    const int64_t queries = q[q.size() - 2] * (k[1] == 0 ? 1 : q[1] / k[1]);
    return std::max(queries, k[k.size() - 2]) + q.back() + x.back();
  }
  const bool along_axis = name.ends_with("softmax") || name == "cumulative_sum";
  if (along_axis) {
    const int64_t axis = attributes.integer("axis");
    return x[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis)];
  }
  if (node.schema().operator_class == OperatorClass::reduction && !selects(name))
    return elements_of(node.input(0)) / std::max<int64_t>(1, elements_of(node.output()));
  if (name == "average_pool") return element_count(attributes.integers("window"));
  if (name.ends_with("pool_gradient")) return overlapping_windows(attributes.integers("window"), attributes);
  if (name.starts_with("cross_entropy")) return x.back();
  if (name == "batch_norm_training" || name == "batch_norm_gradient")
    return elements_of(node.input(0)) / x.back();
  if (name == "layer_norm" || name == "group_norm")
    return elements_of(node.input(0)) / std::max<int64_t>(1, elements_of(node.output(1)));
  // Within a row, and over the rows for scale and bias.
  if (name == "layer_norm_gradient" || name == "group_norm_gradient") {
    return std::max(elements_of(node.input(0)) / std::max<int64_t>(1, elements_of(node.input(3))),
                    elements_of(node.input(0)) / std::max<int64_t>(1, elements_of(node.output(1))));
  }
  if (name == "scatter_add" || name == "combine_rows") return elements_of(node.input(0));
  return 1;
}

Tolerances tolerances_of(const Node& node, const std::vector<Tensor>& inputs) {
  const std::string& name = node.operator_name();
  const std::vector<Tensor> expected = results_where_they_matter(node, inputs);
  Tolerances result;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const DataType type = node.output(i)->data_type();
    const double largest = expected.empty() ? 0 : largest_of(expected[i]);
    const Problem problem{.terms = summed_terms(node),
                          .magnitude = inputs.empty() ? 1 : magnitude_of(node, inputs, largest)};
    const bool has_statistics = name == "layer_norm" || name == "group_norm" || name == "batch_norm_training";
    if (selects(name)) {
      result.push_back({});
    } else if (name == "reduce_mean") {
      result.push_back(mean_tolerance(type, problem));
    } else if (name == "reduce_product") {
      result.push_back(product_tolerance(type, problem.terms));
    } else if (name == "softmax" || name == "log_softmax" || name == "cross_entropy") {
      result.push_back(
          softmax_tolerance(type, problem.terms, spread_of(inputs[0]), name == "softmax" ? 0 : 1));
    } else if (name == "cross_entropy_gradient") {
      result.push_back(softmax_tolerance(type, problem.terms, spread_of(inputs[0]), largest_of(inputs[2])));
    } else if (has_statistics && i == 1) {
      result.push_back(mean_tolerance(type, {problem.terms, largest_of(inputs[0])}));
    } else if (has_statistics && i == 2) {
      result.push_back(variance_tolerance(type, problem.terms));
    } else {
      result.push_back(tolerance_for(node.schema().operator_class, type, problem));
    }
  }
  return result;
}

}  // namespace tessera::testing
