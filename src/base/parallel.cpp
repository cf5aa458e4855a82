#include "tessera/base/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera {

void for_each_in_parallel(int64_t count, const std::function<void(int64_t index)>& work,
                          const std::atomic<bool>* stop) {
  constexpr int64_t kMostThreads = 64;
  std::exception_ptr failure;
  std::mutex mutex;  // guards it
  std::atomic<int64_t> next{0};
  const auto take_some = [&] {
    try {
      for (int64_t i = next++; i < count && (stop == nullptr || !stop->load()); i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (failure == nullptr) failure = std::current_exception();
    }
  };
  {
    const auto processors = static_cast<int64_t>(std::thread::hardware_concurrency());
    const int64_t threads = std::min(std::clamp<int64_t>(processors, 1, kMostThreads), count);
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back(take_some);
    take_some();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace tessera
