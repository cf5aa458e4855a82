// Activations with attributes, and Clip.
#include <cmath>
#include <optional>
#include <utility>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

Value* zero_of(Value* x) {
  return ops::constant_like(x, 0);
}

// scale * (x where it is positive, else alpha * (e^(x / width) - 1)).
Value* exponential_unit(Value* x, double alpha, double scale, double width) {
  Value* below = ops::minimum(x, zero_of(x));
  Value* grown = ops::multiply(ops::add(ops::exp(ops::multiply(below, 1 / width)), -1.0), alpha);
  Value* y = ops::select(ops::greater(x, zero_of(x)), x, grown);
  return scale == 1 ? y : ops::multiply(y, scale);
}

void lower_selu(LowerCall& call) {
  // Klambauer et al. 2017, "Self-Normalizing Neural Networks".
  call.result(0, exponential_unit(call.operand(0), call.real("alpha", 1.67326319217681884765625),
                                  call.real("gamma", 1.05070102214813232421875), 1));
}

void lower_celu(LowerCall& call) {
  const double alpha = call.real("alpha", 1);
  call.result(0, exponential_unit(call.operand(0), alpha, 1, alpha));
}

void lower_thresholded_relu(LowerCall& call) {
  Value* x = call.operand(0);
  call.result(0, ops::select(ops::greater(x, ops::constant_like(x, call.real("alpha", 1))), x, zero_of(x)));
}

void lower_shrink(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* x = call.operand(0);
  if (!is_floating(type)) x = ops::cast(x, DataType::fp32);
  const double lambda = call.real("lambd", 0.5);
  const double bias = call.real("bias", 0);
  Value* above = ops::select(ops::greater(x, ops::constant_like(x, lambda)), ops::add(x, -bias), zero_of(x));
  Value* y = ops::select(ops::less(x, ops::constant_like(x, -lambda)), ops::add(x, bias), above);
  call.result(0, ops::cast(y, type));
}

// Both limits of a Clip on floating-point numbers, where they are finite and never change.
std::optional<std::pair<double, double>> known_limits(LowerCall& call, DataType type) {
  if (type != DataType::fp16 && type != DataType::bf16 && type != DataType::fp32) return {};
  std::pair<double, double> limits;
  if (call.version() < 11) {
    if (!call.has_argument("min") || !call.has_argument("max")) return {};
    limits = {call.real("min", 0), call.real("max", 0)};
  } else {
    if (!call.has(1) || !call.has(2)) return {};
    const Tensor* low = call.settled(1);
    const Tensor* high = call.settled(2);
    if (low == nullptr || high == nullptr || low->size() != 1 || high->size() != 1) return {};
    limits = {low->at(0), high->at(0)};
  }
  if (!std::isfinite(limits.first) || !std::isfinite(limits.second)) return {};
  return limits;
}

// The limits were attributes before opset 11.
void lower_clip(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  // An activation, which what stands before it may take along.
  if (const std::optional<std::pair<double, double>> limits = known_limits(call, type)) {
    const auto [low, high] = *limits;
    Value* input = call.operand(0);
    return call.result(0, low == 0 && high == 6 ? ops::relu6(input) : ops::clip(input, low, high));
  }
  Value* x = to_computing(call.operand(0));
  Value* low = nullptr;
  Value* high = nullptr;
  if (call.version() < 11) {
    if (call.has_argument("min")) low = ops::constant_like(x, call.real("min", 0));
    if (call.has_argument("max")) high = ops::constant_like(x, call.real("max", 0));
  } else {
    if (call.has(1)) low = to_computing(call.operand(1));
    if (call.has(2)) high = to_computing(call.operand(2));
  }
  if (low != nullptr) x = ops::maximum(x, low);
  if (high != nullptr) x = ops::minimum(x, high);
  call.result(0, from_computing(x, type));
}

void lower_relu(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* x = call.operand(0);
  if (is_floating(type)) return call.result(0, ops::relu(x));
  x = to_computing(x);
  call.result(0, from_computing(ops::maximum(x, zero_of(x)), type));
}

void lower_swish(LowerCall& call) {
  Value* x = call.operand(0);
  const double alpha = call.real("alpha", 1);
  call.result(0, alpha == 1 ? ops::silu(x) : ops::multiply(x, ops::sigmoid(ops::multiply(x, alpha))));
}

const RuleRegistrations kRegistration{
    {.name = "Relu", .lower = lower_relu},
    {.name = "LeakyRelu",
     .lower =
         [](LowerCall& call) { call.result(0, ops::leaky_relu(call.operand(0), call.real("alpha", 0.01))); }},
    {.name = "Elu",
     .lower = [](LowerCall& call) { call.result(0, ops::elu(call.operand(0), call.real("alpha", 1))); }},
    {.name = "Selu", .lower = lower_selu},
    {.name = "Celu", .lower = lower_celu},
    {.name = "ThresholdedRelu", .lower = lower_thresholded_relu},
    {.name = "Shrink", .lower = lower_shrink},
    {.name = "Clip", .lower = lower_clip},
    {.name = "Swish", .lower = lower_swish},
    {.name = "Gelu",
     .lower =
         [](LowerCall& call) {
           call.result(0, ops::gelu(call.operand(0), call.text("approximate", "none") == "tanh"));
         }},
    {.name = "HardSigmoid",
     .lower =
         [](LowerCall& call) {
           const Attributes attributes{{"alpha", call.real("alpha", 0.2)}, {"beta", call.real("beta", 0.5)}};
           call.result(0, ops::apply("hard_sigmoid", {call.operand(0)}, attributes)->output());
         }},
};

}  // namespace
}  // namespace tessera::onnx
