// Which of a step's updates happen: none where it must not be trained on from.
#pragma once

#include <string>
#include <unordered_set>
#include <utility>

#include "tessera/nn/context.h"

namespace tessera::train {

class StepGuard {
 public:
  // The loss scale's states have the prefix before their names; halting is StepOptions::halting.
  StepGuard(nn::Context& context, std::string prefix, bool halting)
      : context_(context), prefix_(std::move(prefix)), halting_(halting) {}

  // For fp16: the factor of the objective, a state that adapts to the gradients' range.
  Value* scale_loss();
  Value* loss_scale() const { return loss_scale_; }  // null: none

  // By what the step is judged, all of it before anybody asks.
  void set_objective(Value* sum) { objective_sum_ = sum; }
  void set_gradient_norm(Value* norm) { gradient_norm_ = norm; }
  // bool []: whether there are gradients to update with.
  void set_ready(Value* ready) { ready_ = ready; }

  // Whether parameters are updated: there are gradients, objective and gradients are numbers, and nothing
  // halted the training.
  Value* sound();
  // Whether the training goes on with this step's batch: with a loss scale, gradients that overflow are no
  // reason to stop.
  Value* goes_on();
  // Not 0 where an earlier step did not go on; null where steps do not halt.
  Value* halted();
  bool is_of_loss_scale(const Value* state) const { return state == loss_scale_ || state == good_steps_; }

  // A state whose update changes nothing in an unsound step as it is.
  void leave(const Value* state) { left_.insert(state); }
  // A state that is of the batch and not of the update: it changes in every step that goes on.
  void carry(const Value* state) { carried_.insert(state); }

  // Puts the conditions before all updates, and adapts the loss scale.
  void apply();

 private:
  Value* steps_on();  // the objective is a number, and nothing halted the training
  Value* finite();    // and there are gradients
  void adapt_loss_scale();

  nn::Context& context_;
  const std::string prefix_;
  const bool halting_;
  Value* loss_scale_ = nullptr;
  Value* good_steps_ = nullptr;
  Value* objective_sum_ = nullptr;
  Value* gradient_norm_ = nullptr;
  Value* ready_ = nullptr;
  Value* halted_ = nullptr;
  Value* steps_on_ = nullptr;
  Value* finite_ = nullptr;
  Value* sound_ = nullptr;
  std::unordered_set<const Value*> left_;
  std::unordered_set<const Value*> carried_;
};

}  // namespace tessera::train
