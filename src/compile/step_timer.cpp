#include "compile/step_timer.h"

#include <algorithm>

namespace tessera {

StepTimer::StepTimer(Queue& queue, const std::vector<Step>& steps, const LanePlan& lanes, bool by_host)
    : queue_(queue), steps_(steps), lanes_(lanes) {
  if (by_host) return;
  timer_ = queue.timer(steps.size() + 1);
  const auto on_lane = static_cast<size_t>(std::count(lanes.on_lane.begin(), lanes.on_lane.end(), true));
  Queue* const lane = on_lane == 0 ? nullptr : queue.lane();
  if (timer_ != nullptr && lane != nullptr) lane_timer_ = lane->timer(2 * on_lane);
}

void StepTimer::use_host() {
  timer_.reset();
  lane_timer_.reset();
}

void StepTimer::mark() {
  if (timer_ != nullptr) return timer_->mark();
  queue_.synchronize();
  host_points_.push_back(Clock::now());
}

std::vector<TimeSpan> StepTimer::times() {
  const std::vector<Clock::time_point> points = timer_ != nullptr ? timer_->points() : host_points_;
  std::vector<Clock::time_point> of_lane;
  if (lane_timer_ != nullptr) of_lane = lane_timer_->points();
  std::vector<TimeSpan> times;
  size_t point = 0;
  size_t lane_point = 0;
  Clock::time_point waited;  // when the last of what the queue has waited for was done
  for (size_t step = 0; step < steps_.size(); ++step) {
    const auto begin = points[point];
    if (steps_[step].kernel != nullptr) ++point;
    times.push_back({begin, points[point]});
    if (of_lane.empty()) continue;
    if (lanes_.waits_for[step] != LanePlan::kNone)
      waited = std::max(waited, times[lanes_.waits_for[step]].end);
    if (lanes_.on_lane[step]) {
      times.back() = {of_lane[lane_point], of_lane[lane_point + 1]};
      lane_point += 2;
    } else {
      times.back().begin = std::clamp(waited, begin, times.back().end);
    }
  }
  return times;
}

}  // namespace tessera
