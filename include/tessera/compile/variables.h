// What outlives the runs of a graph: parameters, states and constants on a device.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/compile/device.h"

namespace tessera {

// Parameters, states and constants on a device, by name; shared by the executables that read and update them.
// Executables that only read them may run from several threads at once; with one that updates them all that
// share them are used by one thread at a time, and their runs take place in the order in which they were
// given.
class Variables {
 public:
  explicit Variables(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  // Creates or overwrites. An existing variable keeps its memory; its type and shape must agree.
  void set(const std::string& name, const Tensor& value);
  // A copy on the host, of what the runs given so far leave. Throws Error(invalid_argument) with the nearest
  // name.
  Tensor get(const std::string& name) const;
  bool contains(const std::string& name) const;
  std::vector<std::string> names() const;  // sorted
  // Gives its memory back; executables that are bound to it must not run any more, unless they only read
  // it before their runs.
  void erase(const std::string& name);
  void* pointer(const std::string& name) const;
  DataType data_type(const std::string& name) const;
  const Shape& shape(const std::string& name) const;
  int64_t bytes() const;
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }

  // What executables make of variables once (folded, packed, in another precision) they keep here for each
  // other, as long as one of them does: `derived` under a text that says what it is made of, null where there
  // is none, or variables have changed since it was kept. It must be finished.
  std::shared_ptr<void> derived(const std::string& key) const;
  void keep_derived(const std::string& key, const std::shared_ptr<void>& memory);
  // Said by whoever changes variables otherwise than by set(): what was derived of them is old.
  void note_change() { ++version_; }

  // Told by each executable that is bound: the queue on which it reads, or also updates, the variables.
  void add_user(const std::shared_ptr<Queue>& queue, bool updates);
  // Called before each run on such a queue: the run begins after those on other queues whose updates it sees,
  // or that must not see its own. Nothing to do where all share a queue, or none updates.
  void order(Queue& queue, bool updates) const;

 private:
  struct Entry {
    DataType type;
    Shape shape;
    std::shared_ptr<void> memory;
  };
  struct Derived {
    uint64_t version = 0;
    std::weak_ptr<void> memory;
  };
  struct User {
    std::weak_ptr<Queue> queue;
    bool updates = false;
  };
  const Entry& entry(const std::string& name) const;  // under the lock
  void wait_for_users() const;

  std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Entry> entries_;
  std::map<std::string, Derived> derived_;
  std::vector<User> users_;
  std::atomic<uint64_t> version_ = 0;
  std::atomic<bool> several_queues_ = false;  // of which one updates
};

// The value of a variable; none where the source has no such variable.
using VariableSource = std::function<std::optional<Tensor>(const std::string& name)>;

}  // namespace tessera
