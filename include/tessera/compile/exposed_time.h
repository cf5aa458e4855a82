// How much of what goes on beside other work that work hides.
#pragma once

#include <vector>

#include "tessera/base/clock.h"
#include "tessera/compile/executable.h"

namespace tessera {

// Seconds in which at least one of the spans is, however they overlap.
double covered_seconds(std::vector<TimeSpan> spans);
// Seconds in which at least one of `spans` is and none of `others`.
double exposed_seconds(const std::vector<TimeSpan>& spans, const std::vector<TimeSpan>& others);

struct CollectiveTime {
  double step = 0;     // seconds from the first node's begin to the last one's end
  double all = 0;      // of these, in which collectives went on
  double exposed = 0;  // of these, in which nothing else did: the queue waited, or they were on it
  double share() const { return step > 0 ? exposed / step : 0; }
};

// Of one step by the times of its nodes. `nodes` are those of Executable::nodes().
CollectiveTime collective_time(const std::vector<NodeReport>& nodes, const NodeTimes& times);

}  // namespace tessera
