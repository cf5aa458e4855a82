// A run on a queue and its lane.
#pragma once

#include <memory>
#include <vector>

#include "tessera/compile/queue.h"

#include "compile/lane_plan.h"

namespace tessera {

// The steps of one run as they are enqueued, on a queue and its lane.
class LaneRun {
 public:
  // Where the queue has no lane, or it is not to be used, all is enqueued on the queue.
  LaneRun(Queue& queue, const LanePlan& plan, bool uses_lane);

  // Where the step is to be enqueued, now that it has waited for what it must. end() comes after it.
  Queue& begin(size_t step);
  void end(size_t step);
  // The queue waits for all that is on the lane.
  void join();

 private:
  struct Flight {
    size_t step;
    const Event* done;
  };

  const Event& keep(std::shared_ptr<Event> event);
  void wait_until(size_t step);

  Queue& queue_;
  Queue* lane_;
  const LanePlan& plan_;
  std::vector<Flight> flights_;
  std::vector<std::shared_ptr<Event>> events_;  // until all is enqueued: a recording refers to them
};

}  // namespace tessera
