// What several threads ask for and one of them makes.
#pragma once

#include <exception>
#include <future>
#include <map>
#include <mutex>

namespace tessera {

// Values by key, kept as long as this lives. May be used by several threads.
template <typename Key, typename Value>
class MadeOnce {
 public:
  // The value that make() returns: whoever asks for a key first calls it, here and now, and all others wait.
  // What it throws they all get, and it is not kept: who asks after that makes the value anew.
  template <typename Make>
  Value get(const Key& key, const Make& make) {
    std::promise<Value> promise;
    std::shared_future<Value> value = promise.get_future().share();
    std::shared_future<Value> of_another;
    {
      const std::lock_guard lock(mutex_);
      const auto [known, added] = values_.try_emplace(key, value);
      if (!added) of_another = known->second;
    }
    if (of_another.valid()) return of_another.get();
    try {
      promise.set_value(make());
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        values_.erase(key);
      }
      promise.set_exception(std::current_exception());
    }
    return value.get();
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::shared_future<Value>> values_;
};

}  // namespace tessera
