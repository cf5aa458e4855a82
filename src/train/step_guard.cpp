#include "train/step_guard.h"

#include "tessera/ops/functions.h"
#include "tessera/train/step.h"

namespace tessera::train {
namespace {

constexpr double kInitialLossScale = 65536;
constexpr double kLossScaleGrowthSteps = 2000;

}  // namespace

Value* StepGuard::scale_loss() {
  loss_scale_ = context_.state(prefix_ + kLossScaleState, {}, nn::constant(kInitialLossScale));
  return loss_scale_;
}

Value* StepGuard::halted() {
  if (halting_ && halted_ == nullptr) halted_ = context_.state(kHaltedState, {}, nn::zeros());
  return halted_;
}

Value* StepGuard::steps_on() {
  if (steps_on_ != nullptr) return steps_on_;
  steps_on_ = ops::is_finite(objective_sum_);
  if (Value* halted = this->halted())
    steps_on_ = ops::logical_and(steps_on_, ops::equal(halted, ops::constant_like(halted, 0)));
  return steps_on_;
}

Value* StepGuard::finite() {
  if (finite_ == nullptr) finite_ = ready_ == nullptr ? steps_on() : ops::logical_and(steps_on(), ready_);
  return finite_;
}

Value* StepGuard::sound() {
  if (sound_ == nullptr)
    sound_ =
        gradient_norm_ == nullptr ? finite() : ops::logical_and(finite(), ops::is_finite(gradient_norm_));
  return sound_;
}

Value* StepGuard::goes_on() {
  if (loss_scale_ != nullptr || gradient_norm_ == nullptr) return steps_on();
  if (ready_ == nullptr) return sound();
  return ops::logical_and(steps_on(), ops::is_finite(gradient_norm_));
}

// Sums that overflowed start anew with the loss scale.
void StepGuard::apply() {
  Graph& graph = context_.graph();
  Value* sound = this->sound();
  Value* goes_on = this->goes_on();
  for (size_t i = 0; i < graph.updates().size(); ++i) {
    const auto& [state, next] = graph.updates()[i];
    if (left_.contains(state)) continue;
    graph.set_update(i, ops::select(carried_.contains(state) ? goes_on : sound, next, state));
  }
  if (halted_ != nullptr)
    context_.update(halted_, ops::select(goes_on, halted_, ops::constant_like(halted_, 1)));
  if (loss_scale_ != nullptr && gradient_norm_ != nullptr) adapt_loss_scale();
}

void StepGuard::adapt_loss_scale() {
  good_steps_ = context_.state(prefix_ + kLossScaleStepsState, {}, nn::zeros());
  Value* counted = ops::add(good_steps_, 1);
  Value* grown = ops::greater_equal(counted, ops::constant_like(counted, kLossScaleGrowthSteps));
  Value* zero = ops::constant_like(good_steps_, 0);
  Value* raised = ops::select(grown, ops::multiply(loss_scale_, 2), loss_scale_);
  Value* lowered = ops::maximum(ops::multiply(loss_scale_, 0.5), ops::constant_like(loss_scale_, 1));
  const auto adapt = [&](Value* state, Value* when_sound, Value* when_overflown) {
    context_.update(state, ops::select(finite(), ops::select(sound(), when_sound, when_overflown), state));
  };
  adapt(loss_scale_, raised, lowered);
  adapt(good_steps_, ops::select(grown, zero, counted), zero);
}

}  // namespace tessera::train
