#include "cli/runs_at_once.h"

#include <algorithm>
#include <future>
#include <latch>
#include <utility>

namespace tessera::cli {

std::vector<std::vector<RunTimes>> trace_at_once(const std::vector<Executable*>& executables, size_t runs) {
  std::latch begin(static_cast<std::ptrdiff_t>(executables.size()));
  std::vector<std::future<std::vector<RunTimes>>> traces;
  for (Executable* executable : executables) {
    traces.push_back(std::async(std::launch::async, [&begin, executable, runs] {
      begin.arrive_and_wait();
      return executable->trace({}, runs);
    }));
  }
  for (const auto& trace : traces) trace.wait();  // they use the latch
  std::vector<std::vector<RunTimes>> result;
  for (auto& trace : traces) result.push_back(trace.get());
  return result;
}

TimeSpan work_of(const RunTimes& run) {
  return run.device.value_or(run.work);
}

double shared_time(const std::vector<std::vector<RunTimes>>& executables) {
  std::vector<std::pair<Clock::time_point, int>> changes;  // of how many have work
  for (const std::vector<RunTimes>& runs : executables) {
    for (const RunTimes& run : runs) {
      const TimeSpan work = work_of(run);
      changes.emplace_back(work.begin, 1);
      changes.emplace_back(work.end, -1);
    }
  }
  std::sort(changes.begin(), changes.end());
  double any = 0;
  double several = 0;
  int working = 0;
  for (size_t i = 0; i + 1 < changes.size(); ++i) {
    working += changes[i].second;
    const double seconds = TimeSpan{changes[i].first, changes[i + 1].first}.seconds();
    if (working > 0) any += seconds;
    if (working > 1) several += seconds;
  }
  return any > 0 ? several / any : 0;
}

}  // namespace tessera::cli
