// Work beside work: which steps of a run are on the lane of its queue, and which others wait for them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compile/schedule.h"
#include "compile/views.h"

namespace tessera {

// By steps of Schedule::every_run. The lane does its steps in their order, each after all that was enqueued
// before it; whoever waits for one of them waits for those before it, too.
struct LanePlan {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::vector<bool> on_lane;
  std::vector<size_t> waits_for;  // the step on the lane that must be done before this one begins, or kNone
  std::vector<size_t>
      joined;  // of a step on the lane: the one that waits for it, or how many steps there are

  bool is_empty() const;
  // For people, of a step on the lane: NodeReport::lane; "" of others.
  std::string describe(size_t step, const Schedule& schedule) const;
};

// A step waits for those on the lane whose results it reads, and for those that read a variable which it
// writes.
LanePlan plan_lanes(const Graph& graph, const Schedule& schedule, const Views& views);

}  // namespace tessera
