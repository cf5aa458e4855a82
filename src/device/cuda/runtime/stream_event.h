// Points in the work of a stream.
#pragma once

#include <memory>

#include "device/cuda/runtime/check.h"

namespace tessera::cuda {

struct DestroyEvent {
  void operator()(CUevent event) const { driver().cuEventDestroy_(event); }
};
using StreamEvent = std::unique_ptr<CUevent_st, DestroyEvent>;

inline StreamEvent create_event(unsigned flags) {
  CUevent event = nullptr;
  check(driver().cuEventCreate_(&event, flags), "creating an event");
  return StreamEvent(event);
}

// Events that only order work are cheaper without a time.
inline StreamEvent untimed_event() {
  return create_event(CU_EVENT_DISABLE_TIMING);
}

inline void record_event(const StreamEvent& event, CUstream stream,
                         unsigned flags = CU_EVENT_RECORD_DEFAULT) {
  check(driver().cuEventRecordWithFlags_(event.get(), stream, flags), "marking a point of the GPU's work");
}

// What is enqueued on the stream from now on runs after the event, as it was last recorded; at once when it
// never was.
inline void wait_on_stream(CUstream stream, const StreamEvent& event) {
  check(driver().cuStreamWaitEvent_(stream, event.get(), CU_EVENT_WAIT_DEFAULT), "ordering two streams");
}

inline void wait_on_host(const StreamEvent& event) {
  check(driver().cuEventSynchronize_(event.get()), "waiting for the GPU");
}

}  // namespace tessera::cuda
