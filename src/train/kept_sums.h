// Gradients that outlast the batch they are of: accumulated over several batches of a step, or delayed to the
// next step. They are kept as sums over the batch's rows and divided by the weight at last, since sums add up
// and means do not.
#pragma once

#include <string>
#include <vector>

#include "tessera/nn/context.h"
#include "tessera/train/phase.h"

#include "train/step_guard.h"

namespace tessera::train {

struct ParameterGradient {
  nn::Variable variable;
  const ParameterGroup* group;
  Value* parameter;
  Value* gradient = nullptr;  // summed over the ranks, where the variable is a shard its part
  Value* rows = nullptr;      // of the parameter, that the gradient is of; null: all
};

// Of one rank, before they are exchanged.
class KeptSums {
 public:
  // The states have the phase's prefix before their names.
  KeptSums(nn::Context& context, StepGuard& guard, const std::string& prefix)
      : context_(context), guard_(guard), prefix_(prefix) {}

  // Adds the batch's gradients, and the weight of the objective, to what there is.
  void accumulate(std::vector<ParameterGradient>& gradients, Value*& weight);
  // Both with what was accumulated, of which nothing is left.
  void take_accumulated(std::vector<ParameterGradient>& gradients, Value*& weight);
  // Those of the step before in place of this step's, which are kept. Returns how many steps they are of, []:
  // 0 before the first step, and where this rank has halted.
  Value* delay(std::vector<ParameterGradient>& gradients, Value*& weight);

 private:
  template <typename Function>
  void for_each(std::vector<ParameterGradient>& gradients, const char* of_gradient, Value*& weight,
                const char* of_weight, const Function& function);
  // A state's value, which `next` follows where the training goes on.
  Value* replace(Value* state, Value* next);
  Value* state(const std::string& name, const Shape& shape = {});

  nn::Context& context_;
  StepGuard& guard_;
  const std::string& prefix_;
};

}  // namespace tessera::train
