// What executables that never run at the same time share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/compile/device.h"

namespace tessera {

// Of one executable of a workspace.
struct WorkspaceUse {
  std::string graph;  // its name
  int64_t bytes = 0;  // that its plan needs alone
};

// Memory for the values between nodes, as much as the largest of its executables plans, and the queue on
// which all of them run, one after the other. One thread at a time uses it, with all its executables; they
// may be compiled by several.
class Workspace {
 public:
  explicit Workspace(std::shared_ptr<Device> device) : device_(std::move(device)), queue_(device_->queue()) {}

  // At least so many bytes from now on; what lay there is lost, and memory() may be another. Throws
  // Error(out_of_memory); there is no memory then.
  void reserve(int64_t bytes);
  void* memory() const { return memory_.get(); }  // null before the first reserve()
  int64_t bytes() const { return bytes_; }
  const std::shared_ptr<Queue>& queue() const { return queue_; }
  const std::shared_ptr<Device>& device() const { return device_; }

  // Told by an executable that is compiled for it; it is one of uses() for as long as what is returned.
  std::shared_ptr<const WorkspaceUse> add_use(WorkspaceUse use);
  // Of its executables, in the order in which they were compiled, also where the device only plans.
  std::vector<WorkspaceUse> uses() const;

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<void> memory_;
  int64_t bytes_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::weak_ptr<const WorkspaceUse>> uses_;
};

// What executables need that share a workspace, and what they would need each with one of its own.
struct WorkspaceNeeds {
  int64_t shared_bytes = 0;  // the largest
  int64_t alone_bytes = 0;   // the sum
};
WorkspaceNeeds needs_of(const std::vector<WorkspaceUse>& uses);

// "workspace: 12.1 MiB for 3 executables (22.4 MiB if each had its own): step 12.1 MiB, ..."; the largest
// first, those of one name together. "" for fewer than two.
std::string workspace_summary(const std::vector<WorkspaceUse>& uses);

}  // namespace tessera
