// Points in the work of a stream as events of the device.
#pragma once

#include "tessera/compile/queue.h"

#include "device/cuda/runtime/context.h"
#include "device/cuda/runtime/stream_event.h"

namespace tessera::cuda {

class PointOfWork : public Event {
 public:
  // After all that was enqueued so far. `flags`: of the event, by which threads may leave their core while
  // they wait.
  PointOfWork(const Context& context, CUstream stream, unsigned flags = CU_EVENT_DISABLE_TIMING)
      : context_(context), event_(create_event(flags)) {
    record_event(event_, stream);
  }
  void wait() const override {
    context_.enter();
    wait_on_host(event_);
  }
  const StreamEvent& event() const { return event_; }

 private:
  const Context& context_;
  StreamEvent event_;
};

}  // namespace tessera::cuda
