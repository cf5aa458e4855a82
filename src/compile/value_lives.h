// How long the memory of each value must be kept, and what that takes, before any kernel is known.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "compile/schedule.h"
#include "compile/views.h"

namespace tessera {

class ValueLives {
 public:
  ValueLives(const Graph& graph, const Schedule& schedule, const Views& views, int64_t alignment);

  // The most that is in memory at a step.
  int64_t peak_bytes() const { return peak_bytes_; }
  // At the step of this peak: the values whose memory is larger than all that `others`, where less of them
  // share memory, then keep of it.
  std::unordered_set<const Value*> larger_at_peak(const ValueLives& others, const Views& views) const;

 private:
  struct Life {
    int64_t first = 0;
    int64_t last = 0;
    int64_t bytes = 0;
    bool holds(int64_t step) const { return first <= step && step <= last; }
  };

  void extend(const Value* whole, int64_t step);
  void find_peak(int64_t steps);

  int64_t alignment_;
  std::unordered_map<const Value*, Life> lives_;  // by what lies in no other's memory
  int64_t peak_step_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace tessera
