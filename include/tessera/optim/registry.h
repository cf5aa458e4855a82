// Optimizers and schedules by name, with their options: what recipes choose from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/base/registry.h"
#include "tessera/optim/optimizer.h"
#include "tessera/optim/schedule.h"

namespace tessera::optim {

struct OptimizerDescription {
  std::string name;
  std::vector<Option> options;
  std::function<Optimizer(const Options& options)> create;
  // What cannot go together; empty: nothing.
  std::function<std::vector<Contradiction>(const Options& options)> check = {};
};

struct ScheduleDescription {
  std::string name;
  std::vector<Option> options;
  // For so many steps in all, so many of them in an epoch.
  std::function<Schedule(const Options& options, int64_t total_steps, int64_t steps_per_epoch)> create;
  std::function<std::vector<Contradiction>(const Options& options)> check = {};
};

Registry<OptimizerDescription>& optimizers();
Registry<ScheduleDescription>& schedules();

struct OptimizerRegistration {
  explicit OptimizerRegistration(OptimizerDescription description) {
    optimizers().add(std::move(description));
  }
};
struct ScheduleRegistration {
  explicit ScheduleRegistration(ScheduleDescription description) { schedules().add(std::move(description)); }
};

}  // namespace tessera::optim
