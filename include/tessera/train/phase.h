// What one kind of training step changes, and how.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/nn/task.h"
#include "tessera/optim/optimizer.h"
#include "tessera/optim/schedule.h"

namespace tessera::train {

// Of a phase with so many steps in all, so many of them in an epoch (0: the data has no epochs).
using ScheduleMaker = std::function<optim::Schedule(int64_t total_steps, int64_t steps_per_epoch)>;

// Parameters that share an optimizer and a learning rate.
struct ParameterGroup {
  std::string name = {};  // tells the rates of several groups apart
  // Which parameters; empty: all that no group before it takes.
  std::function<bool(const nn::Variable& parameter)> takes = {};
  optim::Optimizer optimizer = optim::sgd();
  ScheduleMaker schedule = {};  // none: constant
};

// One graph: the gradient of one objective to the parameters of some groups, and their updates. Several
// phases take turns, as the two networks of a GAN do.
struct Phase {
  std::string name =
      {};  // begins the names of what only this phase keeps; empty where there is but one phase
  std::string objective = {};  // empty: the task's only one
  std::vector<ParameterGroup> groups = {{}};
  int64_t repeat = 1;       // steps in a row before the next phase's turn
  bool same_batch = false;  // takes no batches of its own, but those of the phase before it
};

// "learning_rate", or with the group's name after it: an input of the step.
std::string learning_rate_input(const ParameterGroup& group);

}  // namespace tessera::train
