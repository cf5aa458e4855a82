#include "compile/lane_run.h"

#include <algorithm>
#include <iterator>

namespace tessera {

LaneRun::LaneRun(Queue& queue, const LanePlan& plan, bool uses_lane)
    : queue_(queue), lane_(plan.is_empty() || !uses_lane ? nullptr : queue.lane()), plan_(plan) {}

Queue& LaneRun::begin(size_t step) {
  if (lane_ == nullptr) return queue_;
  if (plan_.waits_for[step] != LanePlan::kNone) wait_until(plan_.waits_for[step]);
  if (!plan_.on_lane[step]) return queue_;
  lane_->wait_for(keep(queue_.mark()));
  return *lane_;
}

void LaneRun::end(size_t step) {
  if (lane_ != nullptr && plan_.on_lane[step]) flights_.push_back({step, &keep(lane_->mark())});
}

void LaneRun::join() {
  if (!flights_.empty()) wait_until(flights_.back().step);
}

const Event& LaneRun::keep(std::shared_ptr<Event> event) {
  events_.push_back(std::move(event));
  return *events_.back();
}

// In another part of a run it has been waited for already.
void LaneRun::wait_until(size_t step) {
  const auto rest = std::find_if(flights_.begin(), flights_.end(),
                                 [&](const Flight& flight) { return flight.step > step; });
  if (rest == flights_.begin()) return;
  queue_.wait_for(*std::prev(rest)->done);
  flights_.erase(flights_.begin(), rest);
}

}  // namespace tessera
