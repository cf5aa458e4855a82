// Times of a GPU's work by events of the driver.
#pragma once

#include <memory>
#include <vector>

#include "tessera/compile/device.h"

#include "device/cuda/runtime/queue.h"
#include "device/cuda/runtime/stream_event.h"

namespace tessera::cuda {

class EventTimer : public DeviceTimer {
 public:
  // Waits for the queue, to see its clock beside the host's.
  EventTimer(CudaQueue& queue, size_t marks);

  void mark() override;
  std::vector<Clock::time_point> points() override;

 private:
  CudaQueue& queue_;
  std::vector<StreamEvent> events_;  // the first is the origin
  size_t used_ = 1;
  Clock::time_point origin_;
};

}  // namespace tessera::cuda
