#include "tessera/report/event_log.h"

#include "tessera/base/error.h"
#include "tessera/base/log.h"

namespace tessera::report {

EventLog::EventLog(const std::filesystem::path& folder, int64_t first_step) {
  attempt([&] { writer_.emplace(folder, EventWriterOptions{.first_step = first_step}); });
}

void EventLog::attempt(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    log_warning("the run goes on without a log of its events: {}", error.what());
    writer_.reset();
  }
}

void EventLog::step(const train::StepEvent& event) {
  if (!writer_.has_value()) return;
  const int64_t step = event.position.step;
  attempt([&] {
    for (const auto& [measure, mean] : event.measures) writer_->add_scalar("train/" + measure, mean, step);
    writer_->add_scalar("train/learning_rate", event.learning_rate, step);
    writer_->add_scalar("train/samples_per_second", event.samples_per_second, step);
  });
}

void EventLog::epoch(const train::EpochRow& row, const std::vector<train::EvaluationRow>& evaluations) {
  if (!writer_.has_value()) return;
  attempt([&] {
    for (const auto& [measure, mean] : row.measures)
      writer_->add_scalar("epoch/train_" + measure, mean, row.step);
    for (const train::EvaluationRow& evaluation : evaluations) {
      for (const auto& [metric, result] : evaluation.results)
        writer_->add_scalar("epoch/" + evaluation.name + "_" + metric, result, row.step);
    }
    writer_->flush();
  });
}

void EventLog::text(const std::string& tag, const std::string& text) {
  if (!writer_.has_value()) return;
  attempt([&] {
    writer_->add_text(tag, text, 0);
    writer_->flush();
  });
}

}  // namespace tessera::report
