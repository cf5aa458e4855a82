// What was made of samples and stays in memory, up to a bound.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::data {

// A value for each of so many samples, as far as they fit into so many bytes. What is in stays in: an epoch
// visits every sample once, in an order of its own, so that whichever are kept, the same share is found; what
// makes room for others would be gone before it is asked for again. For several threads at once.
template <typename Value>
class BoundedCache {
 public:
  // Throws Error(invalid_argument) where nothing can be kept.
  BoundedCache(int64_t samples, int64_t capacity) : capacity_(capacity) {
    require(samples >= 0 && capacity > 0, ErrorCode::invalid_argument,
            "a cache of {} bytes for {} samples, expected more than none", capacity, samples);
    values_.resize(static_cast<size_t>(samples));
  }

  // Null: it is not kept.
  std::shared_ptr<const Value> find(int64_t index) const {
    const std::lock_guard lock(mutex_);
    return values_[static_cast<size_t>(index)];
  }
  // Whether so many bytes more would be kept.
  bool has_room(int64_t bytes) const {
    const std::lock_guard lock(mutex_);
    return bytes <= capacity_ - bytes_;
  }
  // Keeps it where there is room and no other thread was first.
  void keep(int64_t index, std::shared_ptr<const Value> value, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Value>& place = values_[static_cast<size_t>(index)];
    if (place != nullptr || bytes > capacity_ - bytes_) return;
    place = std::move(value);
    bytes_ += bytes;
    ++count_;
  }

  int64_t capacity() const { return capacity_; }
  int64_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  int64_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  const int64_t capacity_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<const Value>> values_;
  int64_t bytes_ = 0;
  int64_t count_ = 0;
};

}  // namespace tessera::data
