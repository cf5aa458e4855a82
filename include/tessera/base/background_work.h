// Work that goes on beside the caller.
#pragma once

#include <future>
#include <limits>
#include <memory>

namespace tessera {

// Threads that run what is added, in its order, each until nothing waits: none is left idle, which would meet
// libraries that are torn down when the process ends. May be used by several threads.
class BackgroundWork {
 public:
  // At most so many at a time, and not more than the machine runs.
  explicit BackgroundWork(unsigned threads = std::numeric_limits<unsigned>::max());
  // Drops what waits, and waits for what runs.
  ~BackgroundWork();
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  // What the task throws is kept for its future alone. Where no thread can be had, the caller does the work.
  void add(std::packaged_task<void()> task);
  // Until nothing waits and nothing runs, which tasks may have added too.
  void wait();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tessera
