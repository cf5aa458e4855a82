// Stretches of time on the clock of the host.
#pragma once

#include <chrono>

namespace tessera {

using Clock = std::chrono::steady_clock;

struct TimeSpan {
  Clock::time_point begin;
  Clock::time_point end;

  double microseconds() const { return std::chrono::duration<double, std::micro>(end - begin).count(); }
  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

inline double seconds_since(Clock::time_point begin) {
  return TimeSpan{begin, Clock::now()}.seconds();
}

}  // namespace tessera
