// A run as its queue records it: parts that are launched, and between them steps that need the host.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "compile/step.h"

namespace tessera {

// Whether a recording can hold the step.
bool is_recordable(const Step& step);

class RecordedRun {
 public:
  // Enqueues the steps from `begin` up to `end`, and after the last of all what follows them.
  using RunSteps = std::function<void(size_t begin, size_t end)>;

  // None where the queue does not record. All must have run before, and outlive what is returned.
  static std::optional<RecordedRun> record(Queue& queue, const std::vector<Step>& steps, const RunSteps& run);

  // Enqueues the whole run; done up to the last step that needs the host.
  void launch();

 private:
  struct Part {
    size_t begin;
    size_t end;
    std::unique_ptr<Recording> recording;  // null: runs step by step
  };

  explicit RecordedRun(RunSteps run) : run_(std::move(run)) {}

  RunSteps run_;
  std::vector<Part> parts_;
};

}  // namespace tessera
