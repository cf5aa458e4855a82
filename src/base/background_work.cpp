#include "tessera/base/background_work.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace tessera {

struct BackgroundWork::State {
  std::mutex mutex;
  std::condition_variable idle;
  std::deque<std::packaged_task<void()>> waiting;
  unsigned limit = 1;
  unsigned active = 0;  // threads

  void work() {
    for (;;) {
      std::packaged_task<void()> task;
      {
        const std::lock_guard lock(mutex);
        if (waiting.empty()) {
          --active;
          idle.notify_all();
          return;
        }
        task = std::move(waiting.front());
        waiting.pop_front();
      }
      task();
    }
  }
};

BackgroundWork::BackgroundWork(unsigned threads) : state_(std::make_shared<State>()) {
  state_->limit = std::clamp(threads, 1U, std::max(std::thread::hardware_concurrency(), 1U));
}

BackgroundWork::~BackgroundWork() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.clear();
  }
  wait();
}

void BackgroundWork::add(std::packaged_task<void()> task) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back(std::move(task));
    if (state_->active == state_->limit) return;
    try {
      std::thread([state = state_] { state->work(); }).detach();  // which waits for the lock
      ++state_->active;
      return;
    } catch (const std::system_error&) {  // the machine has no more threads
      if (state_->active > 0) return;
      ++state_->active;
    }
  }
  state_->work();
}

void BackgroundWork::wait() {
  std::unique_lock lock(state_->mutex);
  state_->idle.wait(lock, [this] { return state_->active == 0; });
}

}  // namespace tessera
