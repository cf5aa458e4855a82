// BatchNormalization, InstanceNormalization, LayerNormalization, GroupNormalization, RMSNormalization, LRN,
// LpNormalization, MeanVarianceNormalization.
#include "tessera/ops/rms_norm.h"

#include "onnx/windows.h"

namespace tessera::onnx {
namespace {

// Statistics are in fp32 at least.
Value* statistics(Value* x) {
  return is_half(x->data_type()) ? ops::cast(x, DataType::fp32) : x;
}

void lower_batch_normalization(LowerCall& call) {
  Value* x = call.operand(0);
  const DataType type = x->data_type();
  const double epsilon = call.real("epsilon", 1e-5);
  Value* wide =
      channels_last(is_half(type) && call.type(1).data_type != type ? ops::cast(x, DataType::fp32) : x);
  Value* scale = statistics(call.operand(1));
  Value* bias = statistics(call.operand(2));
  Value* mean = statistics(call.statistic(3));
  Value* variance = statistics(call.statistic(4));
  if (program::GraphOwner* trainer = call.trainer()) {
    call.require(!call.wants(1) && !call.wants(2), "a network that is trained keeps its running statistics");
    const program::GraphOwner::BatchNorm norm{scale,    bias,    mean,
                                              variance, epsilon, 1 - call.real("momentum", 0.9)};
    Value* y = trainer->batch_norm(call.instruction().results[0], wide, norm);
    return call.result(0, ops::cast(channels_first(y), type));
  }
  if (call.integer("training_mode", 0) == 0) {
    Value* y = ops::batch_norm_inference(wide, scale, bias, mean, variance, epsilon);
    return call.result(0, ops::cast(channels_first(y), type));
  }
  const double momentum = call.real("momentum", 0.9);
  const ops::BatchNorm made = ops::batch_norm_training(wide, scale, bias, epsilon);
  const auto running = [&](Value* before, Value* batch, DataType result) {
    return ops::cast(ops::add(ops::multiply(before, momentum), ops::multiply(batch, 1 - momentum)), result);
  };
  call.result(0, ops::cast(channels_first(made.result), type));
  call.result(1, running(mean, made.mean, call.type(3).data_type));
  call.result(2, running(variance, made.variance, call.type(4).data_type));
}

Value* group_normalized(Value* x, Value* scale, Value* bias, int64_t groups, double epsilon) {
  return channels_first(
      ops::group_norm(channels_last(x), statistics(scale), statistics(bias), groups, epsilon));
}

void lower_instance_normalization(LowerCall& call) {
  Value* x = call.operand(0);
  call.result(
      0, group_normalized(x, call.operand(1), call.operand(2), extent(x, 1), call.real("epsilon", 1e-5)));
}

// Before opset 21 there was a scale for each group, since then there is one for each channel.
void lower_group_normalization(LowerCall& call) {
  Value* x = call.operand(0);
  const int64_t groups = call.integer("num_groups");
  const int64_t channels = extent(x, 1);
  call.require(groups > 0 && channels % groups == 0, "its channels are no multiple of its groups");
  const auto per_channel = [&](Value* value) {
    if (call.version() >= 21) return value;
    return reshape(broadcast(unsqueeze(value, {1}), {groups, channels / groups}), {channels});
  };
  call.result(0, group_normalized(x, per_channel(call.operand(1)), per_channel(call.operand(2)), groups,
                                  call.real("epsilon", 1e-5)));
}

void lower_layer_normalization(LowerCall& call) {
  Value* x = call.operand(0);
  const DataType type = x->data_type();
  const Shape shape = shape_of(x);
  const int64_t axis = axis_of(call, call.integer("axis", -1), std::ssize(shape));
  const double epsilon = call.real("epsilon", 1e-5);
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < std::ssize(shape); ++i) axes.push_back(i);
  Value* wide = statistics(x);
  Value* mean = ops::reduce_mean(wide, {axes, true});
  Value* centered = ops::subtract(wide, mean);
  Value* variance = ops::reduce_mean(ops::square(centered), {axes, true});
  Value* inverse = ops::rsqrt(ops::add(variance, epsilon));
  Value* y = nullptr;
  const Shape normalized(shape.begin() + axis, shape.end());
  if (shape_of(call.operand(1)) == normalized && (!call.has(2) || shape_of(call.operand(2)) == normalized)) {
    Value* scale = statistics(call.operand(1));
    Value* bias = call.has(2) ? statistics(call.operand(2)) : nullptr;
    y = ops::layer_norm(x, scale, bias, std::ssize(axes), epsilon);
  } else {
    y = ops::multiply(ops::cast(ops::multiply(centered, inverse), type), call.operand(1));
    if (call.has(2)) y = ops::add(y, call.operand(2));
  }
  call.result(0, y);
  call.result(1, mean);
  call.result(2, inverse);
}

void lower_rms_normalization(LowerCall& call) {
  Value* x = call.operand(0);
  const int64_t axis = axis_of(call, call.integer("axis", -1), x->type().rank());
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < x->type().rank(); ++i) axes.push_back(i);
  const double epsilon = call.real("epsilon", 1e-5);
  const Shape shape = shape_of(x);
  if (shape_of(call.operand(1)) == Shape(shape.begin() + axis, shape.end()) &&
      call.operand(1)->data_type() == x->data_type()) {
    call.result(0, ops::rms_norm(x, statistics(call.operand(1)), std::ssize(axes), epsilon));
    return;
  }
  Value* wide = statistics(x);
  Value* squares = ops::add(ops::reduce_mean(ops::square(wide), {axes, true}), epsilon);
  Value* normalized = ops::cast(ops::multiply(wide, ops::rsqrt(squares)), call.type(1).data_type);
  call.result(0, ops::multiply(normalized, call.operand(1)));
}

// Krizhevsky et al. 2012: x / (bias + alpha / size * sum of the squares of neighboring channels)^beta.
void lower_local_response(LowerCall& call) {
  Value* x = call.operand(0);
  const int64_t size = call.integer("size");
  call.require(size > 0 && size < 65536, "its size is to be positive");
  call.require(x->type().rank() > 1, "its operand is to have channels");
  std::vector<int64_t> low(static_cast<size_t>(x->type().rank()), 0);
  std::vector<int64_t> high = low;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  Value* squares = ops::pad(ops::square(x), low, high, 0);
  Value* sum = nullptr;
  for (int64_t i = 0; i < size; ++i) {
    Value* part = slice_axis(squares, 1, i, i + extent(x, 1));
    sum = sum == nullptr ? part : ops::add(sum, part);
  }
  Value* base = ops::add(ops::multiply(sum, call.real("alpha", 1e-4) / static_cast<double>(size)),
                         call.real("bias", 1));
  call.result(0, ops::divide(x, ops::power(base, ops::constant_like(base, call.real("beta", 0.75)))));
}

// Rows of zeros stay zeros.
void lower_lp_normalization(LowerCall& call) {
  Value* x = call.operand(0);
  const int64_t axis = axis_of(call, call.integer("axis", -1), x->type().rank());
  const int64_t p = call.integer("p", 2);
  call.require(p == 1 || p == 2, "its p is 1 or 2");
  Value* norm = p == 1 ? ops::reduce_sum(ops::absolute(x), {{axis}, true})
                       : ops::sqrt(ops::reduce_sum(ops::square(x), {{axis}, true}));
  Value* zero = ops::constant_like(norm, 0);
  call.result(0, ops::divide(x, ops::select(ops::equal(norm, zero), ops::constant_like(norm, 1), norm)));
}

void lower_mean_variance(LowerCall& call) {
  Value* x = call.operand(0);
  std::vector<int64_t> axes = call.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  Value* centered = ops::subtract(x, ops::reduce_mean(x, {axes, true}));
  Value* deviation = ops::sqrt(ops::reduce_mean(ops::square(centered), {axes, true}));
  call.result(0, ops::divide(centered, ops::add(deviation, 1e-9)));
}

const RuleRegistrations kRegistration{
    {.name = "BatchNormalization", .lower = lower_batch_normalization},
    {.name = "InstanceNormalization", .lower = lower_instance_normalization},
    {.name = "GroupNormalization", .lower = lower_group_normalization},
    {.name = "LayerNormalization", .lower = lower_layer_normalization},
    {.name = "RMSNormalization", .lower = lower_rms_normalization},
    {.name = "LRN", .lower = lower_local_response},
    {.name = "LpNormalization", .lower = lower_lp_normalization},
    {.name = "MeanVarianceNormalization", .lower = lower_mean_variance},
};

}  // namespace
}  // namespace tessera::onnx
