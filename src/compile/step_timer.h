// When each step of a run took place.
#pragma once

#include <memory>
#include <vector>

#include "tessera/compile/executable.h"
#include "tessera/compile/queue.h"

#include "compile/lane_plan.h"
#include "compile/step.h"

namespace tessera {

class StepTimer {
 public:
  // By the device where it has a timer; by the host, which waits for each step, where `by_host` says so or it
  // has none.
  StepTimer(Queue& queue, const std::vector<Step>& steps, const LanePlan& lanes, bool by_host);

  bool is_by_device() const { return timer_ != nullptr; }
  // From now on by the host, where nothing was marked yet.
  void use_host();

  // At the beginning, and after each step with a kernel.
  void mark();
  // For both ends of each step on the lane; null where they need no marks of their own.
  DeviceTimer* lane() const { return lane_timer_.get(); }

  // When all is enqueued. A step begins where the one before it ends, or the work of the lane for which it
  // waits.
  std::vector<TimeSpan> times();

 private:
  Queue& queue_;
  const std::vector<Step>& steps_;
  const LanePlan& lanes_;
  std::unique_ptr<DeviceTimer> timer_;
  std::unique_ptr<DeviceTimer> lane_timer_;
  std::vector<Clock::time_point> host_points_;
};

}  // namespace tessera
