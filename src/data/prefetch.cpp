#include "data/prefetch.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

// Workers take batch numbers in turn and put what they made into a ring of `depth` slots; the consumer takes
// the slots in order. A worker waits while its number is `depth` or more ahead of the consumer, so every slot
// has one owner at a time.
class Pipeline : public Stream {
 public:
  Pipeline(BatchMaker make, int64_t first, int64_t end, int64_t workers, int64_t prefetch)
      : make_(std::move(make)),
        workers_(workers),
        end_(end),
        slots_(static_cast<size_t>(std::max(prefetch, workers))),
        next_made_(first),
        next_taken_(first) {}
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  ~Pipeline() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    slot_freed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void start() {
    const int64_t wanted = std::min(workers_, end_ - next_taken_);
    try {
      for (int64_t i = 0; i < wanted; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      fail(ErrorCode::out_of_memory, "cannot start loader thread {} of {}: {}", threads_.size() + 1, wanted,
           error.what());
    }
  }

  std::optional<Batch> next() override {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (next_taken_ == end_) return std::nullopt;
    Slot slot = workers_ == 0 ? make(next_taken_++) : take();
    failure_ = std::move(slot.failure);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return std::move(slot.batch);
  }

 private:
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr failure;
    bool full() const { return batch.has_value() || failure != nullptr; }
  };

  Slot& slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  Slot take() {
    std::unique_lock lock(mutex_);
    Slot& slot = slot_of(next_taken_);
    slot_filled_.wait(lock, [&] { return slot.full(); });
    ++next_taken_;
    Slot taken = std::exchange(slot, {});
    lock.unlock();
    slot_freed_.notify_all();
    return taken;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      const auto depth = static_cast<int64_t>(slots_.size());
      slot_freed_.wait(lock,
                       [&] { return stopping_ || next_made_ >= end_ || next_made_ < next_taken_ + depth; });
      if (stopping_ || next_made_ >= end_) return;
      const int64_t number = next_made_++;
      lock.unlock();
      Slot made = make(number);
      lock.lock();
      if (made.failure != nullptr) next_made_ = end_;  // nothing after it will be asked for
      slot_of(number) = std::move(made);
      slot_filled_.notify_one();
    }
  }

  Slot make(int64_t number) const {
    Slot slot;
    try {
      slot.batch = make_(number);
    } catch (...) {
      slot.failure = std::current_exception();
    }
    return slot;
  }

  const BatchMaker make_;
  const int64_t workers_;
  const int64_t end_;
  std::exception_ptr failure_;  // the consumer's alone

  std::mutex mutex_;  // guards what follows, up to the threads
  std::condition_variable slot_filled_;
  std::condition_variable slot_freed_;
  std::vector<Slot> slots_;
  int64_t next_made_;
  int64_t next_taken_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

void check_prefetch(int64_t workers, int64_t prefetch) {
  const auto code = ErrorCode::invalid_argument;
  require(workers >= 0 && workers <= 256, code, "workers is {}, expected 0 to 256", workers);
  require(prefetch > 0 && prefetch <= 4096, code, "prefetch is {}, expected 1 to 4096", prefetch);
}

std::unique_ptr<Stream> prefetched(BatchMaker make, int64_t first, int64_t end, int64_t workers,
                                   int64_t prefetch) {
  auto pipeline = std::make_unique<Pipeline>(std::move(make), first, end, workers, prefetch);
  pipeline->start();
  return pipeline;
}

}  // namespace tessera::data
