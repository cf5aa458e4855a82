// Starts the ranks of a run as processes of this machine, and ends them together.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tessera::distribute {

struct LaunchOptions {
  int64_t ranks = 1;
  std::vector<std::string> command;         // program and arguments, the same for all ranks
  double heartbeat_seconds = 30;            // a rank that gives no sign of life for so long hangs
  const std::atomic<bool>* stop = nullptr;  // set from a signal handler: all ranks are sent SIGTERM, once
  bool restarted = false;                   // the ranks go on from what the run saved, where it did
  // Of each rank the place on this machine, and so its GPU; empty: in their order.
  std::vector<int64_t> places = {};
};

struct LaunchResult {
  int code = 0;  // of the rank that failed first; 0: none did
  std::string
      failure;  // what went wrong with which rank; "" where nothing did, or the ranks were interrupted
  bool of_the_machine = false;       // a rank died or hung, or its machine failed: another try may go on
  std::optional<int64_t> lost = {};  // the rank that did
};

// Waits until all ranks have ended. They find each other by what registry.h reads of the environment, and the
// output of all but the first goes where rank_output.h says. When a rank dies, hangs or ends with an error
// the others are told, and after kGraceSeconds ended. They end with this process, whatever ends it. Throws
// Error(io) where a process cannot be started.
inline constexpr double kGraceSeconds = 5;
LaunchResult launch(const LaunchOptions& options);

}  // namespace tessera::distribute
