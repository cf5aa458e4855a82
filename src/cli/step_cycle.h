// What `bench` repeats: a run, or all steps up to an update of accumulated batches, or up to an average over
// the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "cli/subject.h"

namespace tessera::cli {

class StepCycle {
 public:
  // Compiled, in one workspace. With one rank there is nobody to average with. Throws as Subject::compile().
  // The subject must outlive it.
  explicit StepCycle(const Subject& subject);

  int64_t steps() const { return accumulated_ * averaged_; }
  int64_t accumulated() const { return accumulated_; }  // batches of an update
  int64_t averaged() const { return averaged_; }        // updates of an average
  // The one that updates.
  const CompiledModel& first() const { return compiled_.at(train::StepKind::updating); }
  double compile_seconds() const;
  // The step of that number, counted from 0.
  Executable& at(int64_t step) const;

  // Gives all steps the same variables. The source says the value of each.
  void load(const std::function<Tensor(const std::string& name)>& value) const;
  // As make_ready().
  void make_ready() const;
  // Drops what was submitted and not received.
  void discard() const;

 private:
  train::StepKind kind_of(int64_t step) const;

  const Subject& subject_;
  int64_t accumulated_ = 1;
  int64_t averaged_ = 1;
  std::map<train::StepKind, CompiledModel> compiled_;
};

}  // namespace tessera::cli
