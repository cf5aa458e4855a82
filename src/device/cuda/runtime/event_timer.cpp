#include "device/cuda/runtime/event_timer.h"

#include "tessera/base/error.h"

#include "device/cuda/runtime/check.h"

namespace tessera::cuda {
namespace {

Clock::duration elapsed(CUevent from, CUevent to) {
  float milliseconds = 0;
  check(driver().cuEventElapsedTime_(&milliseconds, from, to), "reading a time");
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace

EventTimer::EventTimer(CudaQueue& queue, size_t marks) : queue_(queue) {
  queue_.context().enter();
  // All of them now: nothing should be created while a stream is recorded.
  for (size_t i = 0; i <= marks; ++i) events_.push_back(create_event(CU_EVENT_DEFAULT));
  queue_.synchronize();
  record_event(events_.front(), queue_.stream());
  queue_.synchronize();
  origin_ = Clock::now();
}

void EventTimer::mark() {
  require(used_ < events_.size(), ErrorCode::internal, "a timer for {} marks got one more",
          events_.size() - 1);
  queue_.context().enter();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  check(driver().cuStreamIsCapturing_(queue_.stream(), &status), "asking whether a run is recorded");
  // In a recording only an external event becomes a node, which takes the time at every launch.
  const bool recording = status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  record_event(events_[used_++], queue_.stream(),
               recording ? CU_EVENT_RECORD_EXTERNAL : CU_EVENT_RECORD_DEFAULT);
}

std::vector<Clock::time_point> EventTimer::points() {
  queue_.synchronize();
  std::vector<Clock::time_point> points;
  if (used_ == 1) return points;
  // Times come as milliseconds in a float, exact enough for kernels of a microsecond only while they are
  // short: from the first mark on, not from the origin.
  const Clock::time_point first = origin_ + elapsed(events_[0].get(), events_[1].get());
  for (size_t i = 1; i < used_; ++i) {
    points.push_back(first + elapsed(events_[1].get(), events_[i].get()));
  }
  return points;
}

}  // namespace tessera::cuda
