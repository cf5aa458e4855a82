// Times of a GPU's work by events of the driver.
#pragma once

#include <memory>
#include <vector>

#include "tessera/compile/device.h"

#include "device/cuda/runtime/context.h"
#include "device/cuda/runtime/event.h"

namespace tessera::cuda {

class EventTimer : public DeviceTimer {
 public:
  // Waits for the GPU, to see its clock beside the host's.
  EventTimer(std::shared_ptr<Context> context, size_t marks);

  void mark() override;
  std::vector<Clock::time_point> points() override;

 private:
  std::shared_ptr<Context> context_;
  std::vector<Event> events_;  // the first is the origin
  size_t used_ = 1;
  Clock::time_point origin_;
};

}  // namespace tessera::cuda
