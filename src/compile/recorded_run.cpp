#include "compile/recorded_run.h"

namespace tessera {
namespace {

// How far the steps from `begin` on go that are alike; an alias is part of what is around it.
size_t end_of_part(const std::vector<Step>& steps, size_t begin, bool recordable) {
  size_t end = begin;
  while (end < steps.size() && (steps[end].kernel == nullptr || is_recordable(steps[end]) == recordable))
    ++end;
  return end;
}

}  // namespace

bool is_recordable(const Step& step) {
  return step.kernel == nullptr || step.kernel->recordable();
}

std::optional<RecordedRun> RecordedRun::record(Queue& queue, const std::vector<Step>& steps,
                                               const RunSteps& run) {
  RecordedRun recorded(run);
  for (size_t begin = 0; begin < steps.size() || recorded.parts_.empty();) {
    const bool recordable = begin == steps.size() || is_recordable(steps[begin]);
    const size_t end = end_of_part(steps, begin, recordable);
    Part part{begin, end, nullptr};
    if (recordable) {
      part.recording = queue.record([run, begin, end] { run(begin, end); });
      if (part.recording == nullptr) return std::nullopt;
    }
    recorded.parts_.push_back(std::move(part));
    begin = end;
  }
  return recorded;
}

void RecordedRun::launch() {
  for (const Part& part : parts_) {
    if (part.recording != nullptr) {
      part.recording->launch();
    } else {
      run_(part.begin, part.end);
    }
  }
}

}  // namespace tessera
