#include "cli/step_waits.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/runs_at_once.h"

namespace tessera::cli {

StepWaits waits_of(const std::vector<RunTimes>& runs) {
  StepWaits waits;
  const size_t first = std::max<size_t>(runs.size() / 2, 1);
  const auto steps = static_cast<double>(runs.size() - first);
  for (size_t i = first; i < runs.size(); ++i) {
    const TimeSpan before = work_of(runs[i - 1]);
    const TimeSpan work = work_of(runs[i]);
    const double rest = std::max(0.0, TimeSpan{before.end, work.begin}.seconds());
    const double host = std::clamp(TimeSpan{before.end, runs[i].work.begin}.seconds(), 0.0, rest);
    waits.pace += (rest + work.seconds()) / steps;
    waits.work += work.seconds() / steps;
    waits.reading += runs[i].reading.seconds() / steps;
    waits.host += host / steps;
    waits.inputs += (rest - host) / steps;
  }
  return waits;
}

std::string describe(const StepWaits& waits) {
  return fmt::format(
      "a step every {:.2f} ms: the device works {:.2f} ms, waits {:.2f} ms for the host and {:.2f} ms for "
      "inputs; the host waits {:.2f} ms for a batch",
      1e3 * waits.pace, 1e3 * waits.work, 1e3 * waits.host, 1e3 * waits.inputs, 1e3 * waits.reading);
}

}  // namespace tessera::cli
