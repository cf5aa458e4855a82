// Points in the work of a stream.
#pragma once

#include <memory>

#include "device/cuda/runtime/check.h"

namespace tessera::cuda {

struct DestroyEvent {
  void operator()(CUevent event) const { driver().cuEventDestroy_(event); }
};
using Event = std::unique_ptr<CUevent_st, DestroyEvent>;

inline Event create_event(unsigned flags) {
  CUevent event = nullptr;
  check(driver().cuEventCreate_(&event, flags), "creating an event");
  return Event(event);
}

inline void record_event(const Event& event, CUstream stream, unsigned flags = CU_EVENT_RECORD_DEFAULT) {
  check(driver().cuEventRecordWithFlags_(event.get(), stream, flags), "marking a point of the GPU's work");
}

// What is enqueued on the stream from now on runs after the event, as it was last recorded; at once when it
// never was.
inline void wait_on_stream(CUstream stream, const Event& event) {
  check(driver().cuStreamWaitEvent_(stream, event.get(), CU_EVENT_WAIT_DEFAULT), "ordering two streams");
}

inline void wait_on_host(const Event& event) {
  check(driver().cuEventSynchronize_(event.get()), "waiting for the GPU");
}

}  // namespace tessera::cuda
