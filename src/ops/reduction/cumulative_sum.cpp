#include <algorithm>

#include "ops/reduction/reduction.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_cumulative_sum(const InferenceCall& call) {
  normalized_axis(call.attributes.integer("axis"), call.input(0).rank());
  return {call.input(0)};
}

// What reaches x[i] is what its element was added to: the same sums from the other end.
std::vector<Value*> gradient_cumulative_sum(const GradientCall& call) {
  const Attributes& attributes = call.node.attributes();
  return {cumulative_sum(call.gradient(), {.axis = attributes.integer("axis"),
                                           .exclusive = attributes.boolean("exclusive"),
                                           .reverse = !attributes.boolean("reverse")})};
}

void reference_cumulative_sum(const ReferenceCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor& y = *call.outputs[0];
  if (x.size() == 0) return;
  const auto rank = static_cast<int64_t>(x.shape().size());
  const int64_t axis = normalized_axis(call.attributes().integer("axis"), rank);
  const bool exclusive = call.attributes().boolean("exclusive");
  const bool reverse = call.attributes().boolean("reverse");
  const std::vector<int64_t> rows = reduced_places(x.shape(), {axis});
  std::vector<double> sums(static_cast<size_t>(x.size() / x.shape()[static_cast<size_t>(axis)]), 0);
  for (int64_t step = 0; step < x.size(); ++step) {
    const int64_t i = reverse ? x.size() - 1 - step : step;
    double& sum = sums[static_cast<size_t>(rows[static_cast<size_t>(i)])];
    const double before = sum;
    sum += x.at(i);
    y.set(i, exclusive ? before : sum);
  }
}

const OperatorRegistration kRegistration({
    .name = "cumulative_sum",
    .documentation =
        "Running sums along `axis`: y[i] = x[0] + ... + x[i], without x[i] where `exclusive`, from the "
        "last element on where `reverse`. 16-bit types are summed in at least fp32 and rounded once; "
        "64-bit integers are exact within 2^53, and what a type does not hold saturates. ONNX's CumSum, "
        "whose axis is known when the graph is made.",
    .operator_class = OperatorClass::reduction,
    .traits = {.any_axis_order = true},
    .inputs = {{.name = "x", .types = kNumericTypes}},
    .attributes = {{"axis", AttributeKind::integer, -1, "Axis to sum along; negative from the end."},
                   {"exclusive", AttributeKind::boolean, false, "Leave an element out of its own sum."},
                   {"reverse", AttributeKind::boolean, false, "Sum from the last element to the first."}},
    .outputs = {"y"},
    .infer = infer_cumulative_sum,
    .gradient = gradient_cumulative_sum,
    .flops = [](const Node& node) { return static_cast<double>(node.input(0)->type().element_count()); },
    .reference = reference_cumulative_sum,
    .examples = {{.inputs = {{{5, 7}}}},
                 {.inputs = {{{5, 7, 3}}}, .attributes = {{"axis", 1}, {"exclusive", true}}},
                 {.inputs = {{{2, 1037}}}, .attributes = {{"reverse", true}}},
                 {.inputs = {{{4, 33}, -9, 9, DataType::int32}},
                  .attributes = {{"axis", 0}, {"exclusive", true}, {"reverse", true}}},
                 {.inputs = {{{3, 0}}}}},
});

}  // namespace

Value* cumulative_sum(Value* x, const CumulativeSumOptions& options) {
  return apply("cumulative_sum", {x},
               {{"axis", options.axis}, {"exclusive", options.exclusive}, {"reverse", options.reverse}})
      ->output();
}

}  // namespace tessera::ops
