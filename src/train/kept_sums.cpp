#include "train/kept_sums.h"

#include "tessera/ops/functions.h"
#include "tessera/train/step.h"

namespace tessera::train {

Value* KeptSums::state(const std::string& name, const Shape& shape) {
  return context_.state(prefix_ + name, shape, nn::zeros());
}

// Calls the function with the state of each sum, and what this batch or step adds to the sum.
template <typename Function>
void KeptSums::for_each(std::vector<ParameterGradient>& gradients, const char* of_gradient, Value*& weight,
                        const char* of_weight, const Function& function) {
  for (ParameterGradient& entry : gradients)
    entry.gradient = function(state(entry.variable.name + of_gradient, entry.variable.shape), entry.gradient);
  weight = function(state(of_weight), weight);
}

Value* KeptSums::replace(Value* state, Value* next) {
  context_.update(state, next);
  guard_.carry(state);
  return state;
}

void KeptSums::accumulate(std::vector<ParameterGradient>& gradients, Value*& weight) {
  for_each(gradients, kAccumulatedState, weight, kAccumulatedWeightState, [&](Value* sum, Value* addend) {
    context_.update(sum, ops::add(sum, addend));
    return addend;
  });
}

void KeptSums::take_accumulated(std::vector<ParameterGradient>& gradients, Value*& weight) {
  for_each(gradients, kAccumulatedState, weight, kAccumulatedWeightState,
           [&](Value* sum, Value* addend) { return ops::add(replace(sum, ops::zeros_like(sum)), addend); });
}

Value* KeptSums::delay(std::vector<ParameterGradient>& gradients, Value*& weight) {
  for_each(gradients, kDelayedState, weight, kDelayedWeightState,
           [&](Value* before, Value* now) { return replace(before, now); });
  Value* steps = state(kDelayedStepsState);
  replace(steps, ops::constant_like(steps, 1));
  Value* halted = guard_.halted();
  if (halted == nullptr) return steps;
  Value* none = ops::constant_like(steps, 0);
  return ops::select(ops::equal(halted, none), steps, none);
}

}  // namespace tessera::train
