// ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp,
// ReduceSumSquare.
#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// Axes came to be an operand: of ReduceSum in opset 13, of the others in 18.
std::vector<int64_t> reduced_axes(LowerCall& call) {
  const bool is_sum = call.instruction().operator_name == "ReduceSum";
  if (call.version() < (is_sum ? 13 : 18)) return call.integers("axes");
  return call.has(1) ? call.known_integers(1) : std::vector<int64_t>{};
}

using Reduction = Value* (*)(Value* x, const ops::ReduceOptions& options);

Value* sum(Value* x, const ops::ReduceOptions& options) {
  return ops::reduce_sum(x, options);
}
// Of integers rounded towards zero.
Value* mean(Value* x, const ops::ReduceOptions& options) {
  if (kFloatingTypes.contains(x->data_type())) return ops::reduce_mean(x, options);
  return ops::cast(ops::reduce_mean(ops::cast(x, DataType::fp64), options), x->data_type());
}
Value* l1(Value* x, const ops::ReduceOptions& options) {
  return ops::reduce_sum(ops::absolute(x), options);
}
Value* sum_of_squares(Value* x, const ops::ReduceOptions& options) {
  return ops::reduce_sum(ops::multiply(x, x), options);
}
Value* floating(Value* x) {
  return kFloatingTypes.contains(x->data_type()) ? x : ops::cast(x, DataType::fp64);
}
Value* l2(Value* x, const ops::ReduceOptions& options) {
  return ops::sqrt(sum_of_squares(floating(x), options));
}
Value* log_sum(Value* x, const ops::ReduceOptions& options) {
  return ops::log(ops::reduce_sum(floating(x), options));
}
// The largest element is taken out, so that nothing overflows.
Value* log_sum_exp(Value* x, const ops::ReduceOptions& options) {
  x = floating(x);
  Value* largest = ops::reduce_max(x, {options.axes, true});
  largest = ops::select(ops::is_finite(largest), largest, ops::constant_like(largest, 0));
  Value* logarithm = ops::log(ops::reduce_sum(ops::exp(ops::subtract(x, largest)), {options.axes, true}));
  Value* y = ops::add(logarithm, largest);
  if (options.keep_dimensions) return y;
  return reshape(y, shape_of(ops::reduce_max(x, options)));
}
Value* maximum(Value* x, const ops::ReduceOptions& options) {
  if (x->data_type() != DataType::boolean) return ops::reduce_max(x, options);
  return ops::cast(ops::reduce_max(ops::cast(x, DataType::int32), options), DataType::boolean);
}
Value* minimum(Value* x, const ops::ReduceOptions& options) {
  if (x->data_type() != DataType::boolean) return ops::reduce_min(x, options);
  return ops::cast(ops::reduce_min(ops::cast(x, DataType::int32), options), DataType::boolean);
}
Value* squares_of_all(Value* x, const ops::ReduceOptions&) {
  return ops::multiply(x, x);
}
Value* itself(Value* x, const ops::ReduceOptions&) {
  return x;
}
Value* magnitude(Value* x, const ops::ReduceOptions&) {
  return ops::absolute(x);
}
Value* logarithm(Value* x, const ops::ReduceOptions&) {
  return ops::log(floating(x));
}

// `of_one` stands for the reduction where no axis is reduced.
template <Reduction reduction, Reduction of_one>
void lower_reduction(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  const int64_t rank = call.type(0).rank();
  const std::vector<int64_t> axes = axes_of(call, reduced_axes(call), rank);
  const bool keeps = call.integer("keepdims", 1) != 0;
  const bool none = axes.empty() && (call.integer("noop_with_empty_axes", 0) != 0 || rank == 0);
  Value* x = to_computing(call.operand(0));
  call.result(0, from_computing(none ? of_one(x, {}) : reduction(x, {axes, keeps}), type));
}

const RuleRegistrations kRegistration{
    {.name = "ReduceSum", .lower = lower_reduction<sum, itself>},
    {.name = "ReduceMean", .lower = lower_reduction<mean, itself>},
    {.name = "ReduceMax", .lower = lower_reduction<maximum, itself>},
    {.name = "ReduceMin", .lower = lower_reduction<minimum, itself>},
    {.name = "ReduceProd", .lower = lower_reduction<ops::reduce_product, itself>},
    {.name = "ReduceL1", .lower = lower_reduction<l1, magnitude>},
    {.name = "ReduceL2", .lower = lower_reduction<l2, magnitude>},
    {.name = "ReduceSumSquare", .lower = lower_reduction<sum_of_squares, squares_of_all>},
    {.name = "ReduceLogSum", .lower = lower_reduction<log_sum, logarithm>},
    {.name = "ReduceLogSumExp", .lower = lower_reduction<log_sum_exp, itself>},
};

}  // namespace
}  // namespace tessera::onnx
