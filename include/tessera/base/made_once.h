// What several threads ask for and one of them makes.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <list>
#include <map>
#include <mutex>

namespace tessera {

// Values by key: the `limit` that were asked for last, and those that are being made. Others go silently, and
// are made anew when somebody asks for them. May be used by several threads.
template <typename Key, typename Value>
class MadeOnce {
 public:
  explicit MadeOnce(size_t limit) : limit_(limit) {}

  // The value that make() returns: whoever asks for a key first calls it, here and now, and all others wait.
  // What it throws they all get, and it is not kept: who asks after that makes the value anew.
  template <typename Make>
  Value get(const Key& key, const Make& make) {
    std::promise<Value> promise;
    std::shared_future<Value> value = promise.get_future().share();
    std::shared_future<Value> of_another;
    {
      const std::lock_guard lock(mutex_);
      const auto [known, added] = entries_.try_emplace(key, Entry{value, {}});
      if (added) {
        known->second.place = latest_first_.insert(latest_first_.begin(), &known->first);
        evict();
      } else {
        latest_first_.splice(latest_first_.begin(), latest_first_, known->second.place);
        of_another = known->second.value;
      }
    }
    if (of_another.valid()) return of_another.get();
    try {
      promise.set_value(make());
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        const auto failed = entries_.find(key);
        latest_first_.erase(failed->second.place);
        entries_.erase(failed);
      }
      promise.set_exception(std::current_exception());
    }
    return value.get();
  }

 private:
  struct Entry {
    std::shared_future<Value> value;
    typename std::list<const Key*>::iterator place;
  };

  // What is being made stays: its maker comes back to it, and others would make it a second time.
  void evict() {
    for (auto place = latest_first_.end(); entries_.size() > limit_ && place != latest_first_.begin();) {
      const auto entry = entries_.find(**--place);
      if (entry->second.value.wait_for(std::chrono::seconds(0)) != std::future_status::ready) continue;
      entries_.erase(entry);
      place = latest_first_.erase(place);
    }
  }

  const size_t limit_;
  std::mutex mutex_;  // guards what follows
  std::map<Key, Entry> entries_;
  std::list<const Key*> latest_first_;
};

}  // namespace tessera
