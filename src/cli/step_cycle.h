// What `bench` repeats: a run, or of local SGD all steps up to an average over the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/model_options.h"

namespace tessera::cli {

class StepCycle {
 public:
  // Compiled, in one workspace. One step where there is one rank, which has nobody to average with. Throws as
  // compile_model().
  explicit StepCycle(const ModelArguments& arguments);

  int64_t steps() const { return steps_; }
  const CompiledModel& first() const { return compiled_.front(); }
  double compile_seconds() const;
  // The step of that number, counted from 0.
  Executable& at(int64_t step) const;

  // Gives all steps the same variables. The source says the value of each.
  void load(const std::function<Tensor(const std::string& name)>& value) const;
  // As make_ready().
  void make_ready(const ModelArguments& arguments) const;
  // Drops what was submitted and not received.
  void discard() const;

 private:
  int64_t steps_ = 1;
  std::vector<CompiledModel> compiled_;  // the step, and the one that averages, if there is one
};

}  // namespace tessera::cli
