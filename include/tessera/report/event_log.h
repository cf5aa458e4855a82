// The events of one run.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/report/tensorboard.h"
#include "tessera/train/trainer.h"

namespace tessera::report {

// A resumed run goes on from its step. A log that cannot be written, from the start or later, is told once
// and costs the run nothing else: its curves are in the training state too.
class EventLog {
 public:
  EventLog(const std::filesystem::path& folder, int64_t first_step);

  void step(const train::StepEvent& event);
  void epoch(const train::EpochRow& row, const std::vector<train::EvaluationRow>& evaluations);
  void text(const std::string& tag, const std::string& text);

 private:
  void attempt(const std::function<void()>& work);

  std::optional<EventWriter> writer_;
};

}  // namespace tessera::report
