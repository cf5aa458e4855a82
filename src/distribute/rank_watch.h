// Whether the ranks of a local group are alive: each gives signs of life, and looks at the others' while it
// waits for them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "distribute/shared_group.h"

namespace tessera::distribute {

// What is wrong with a rank of separate processes, seen from another one, that has not beaten for so many
// seconds: it hangs, or has not come since `since`; "" where nothing is.
std::string silence_of(const GroupHeader& header, int64_t rank, double seconds, int64_t since);

class RankWatch {
 public:
  // Joins as that rank. `seconds` without a sign of life count as hanging; 0: threads of one process, which
  // live and die together, are not watched.
  RankWatch(GroupMemory memory, int64_t rank, double seconds);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  const GroupMemory& memory() const { return memory_; }
  int64_t rank() const { return rank_; }
  // What is wrong with a rank that does not come; "" where nothing is.
  std::string complaint(int64_t rank);

 private:
  void beat();
  void watch();
  bool is_dead(int64_t rank);

  GroupMemory memory_;
  const int64_t rank_;
  const double seconds_;
  const int64_t joined_ = monotonic_nanoseconds();
  std::vector<int> processes_;  // descriptors of the ranks' processes, -1 where there is none yet
  uint64_t steps_ = 0;          // of progress, when it last beat
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera::distribute
