#include "event_log.h"

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/log.h"

namespace tessera::train {

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

void EventLog::step(const StepEvent& event) {
  if (!writer_.has_value()) return;
  attempt([&] {
    writer_->add_scalar("train/loss", event.loss, event.position.step);
    writer_->add_scalar("train/learning_rate", event.learning_rate, event.position.step);
    writer_->add_scalar("train/images_per_second", event.images_per_second, event.position.step);
  });
}

void EventLog::epoch(const EpochRow& row) {
  if (!writer_.has_value()) return;
  attempt([&] {
    writer_->add_scalar("epoch/train_loss", row.train_loss, row.step);
    writer_->add_scalar("epoch/train_accuracy", row.train_accuracy, row.step);
    if (!std::isnan(row.test_accuracy)) {
      writer_->add_scalar("epoch/test_loss", row.test_loss, row.step);
      writer_->add_scalar("epoch/test_accuracy", row.test_accuracy, row.step);
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

}  // namespace tessera::train
