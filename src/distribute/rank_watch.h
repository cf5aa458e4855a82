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
  bool has_left(int64_t rank) const;

 private:
  RankSigns& signs_of(int64_t rank) const { return memory_.header().signs[static_cast<size_t>(rank)]; }
  void watch();
  bool is_dead(int64_t rank);

  GroupMemory memory_;
  const int64_t rank_;
  const double seconds_;
  Pulse pulse_;
  Attention attention_;
  std::mutex processes_mutex_;
  std::vector<int> processes_;  // descriptors of the ranks' processes, -1 where there is none yet
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera::distribute
