// Tasks by name, with the keys that recipes of them have.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/base/registry.h"
#include "tessera/train/workload.h"

namespace tessera::train {

struct OptionSection {
  std::string name;  // "model"
  std::vector<Option> options;
  // What the first of them chooses from, each with options of its own; asked once all have registered
  // themselves. Empty: it says itself what it may be.
  std::function<std::vector<OptionChoice>()> choices = {};
};

// `settings` hold values by section and key: "model.width".
struct TaskDescription {
  std::string name;
  std::string documentation;            // one line
  std::vector<OptionSection> sections;  // beside what every recipe has, in the order of printing
  // Sets what was left out and depends on other values; empty: nothing does.
  std::function<void(Options& settings)> complete = {};
  // What cannot go together; empty: nothing.
  std::function<std::vector<Contradiction>(const Options& settings)> check = {};
  std::function<Workload(const Options& settings)> create;
  bool is_default = false;  // the one of recipes that name none
};

Registry<TaskDescription>& tasks();
// Throws Error(internal) unless there is exactly one.
const TaskDescription& default_task(const Registry<TaskDescription>& among = tasks());

struct TaskRegistration {
  explicit TaskRegistration(TaskDescription description) { tasks().add(std::move(description)); }
};

}  // namespace tessera::train
