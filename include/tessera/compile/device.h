// The interface of a backend: memory, queues, and candidate kernels for nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/compile/kernel.h"
#include "tessera/compile/queue.h"
#include "tessera/passes/pass.h"

namespace tessera {

struct DeviceDescription {
  std::string name;   // "cpu"
  std::string model;  // "AMD EPYC ..., 2 threads"
  int64_t memory_bytes = 0;
  std::map<std::string, std::string> versions;  // library -> version
  // What the hardware can do at best; 0 and left out where that is not known.
  double bytes_per_second = 0;                   // of its memory
  std::map<Precision, double> flops_per_second;  // dense; a multiply-add counts two
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceDescription description() const = 0;
  // False for the null device: it plans, and refuses to run.
  virtual bool executes() const { return true; }
  // True for a device that creates kernels although it does not run them, so that workspaces and results in
  // place are planned as on the device that it stands for.
  virtual bool plans_kernels() const { return false; }
  // Memory that the host can read and write directly through the same pointer.
  virtual bool host_accessible() const { return true; }

  // What the passes are to know of this device's kernels for a compilation with these options.
  virtual PassTarget pass_target(const PassOptions& options) const { return {}; }
  // What training uses where the user names no precision: the fastest arithmetic on tensors in fp32 with
  // which networks are commonly trained.
  virtual Precision training_precision() const { return Precision::fp32; }

  // Ordered from the one to prefer unmeasured; the last ones are fallbacks that take anything. The autotuner
  // may time those that do not refuse.
  virtual std::vector<KernelCandidate> candidates(const Node& node) const = 0;
  // True when candidates of this node are worth timing; otherwise the first that does not refuse is taken.
  virtual bool tunable(const Node& node) const { return false; }

  // In bytes, of what allocate() gives and of every block of an arena; a multiple of kMemoryAlignment.
  virtual int64_t memory_alignment() const { return kMemoryAlignment; }
  // So aligned, and filled with zeros when this returns. It may be given to others as soon as it is freed:
  // all work that uses it must be done by then. Throws Error(out_of_memory).
  virtual std::shared_ptr<void> allocate(int64_t bytes) = 0;
  // The bytes that allocate() could still give; none where the device does not know.
  virtual std::optional<int64_t> free_bytes() const { return std::nullopt; }
  // The most bytes that what allocate() gave had at a time since this process opened the device; none where
  // the device does not count.
  virtual std::optional<int64_t> peak_bytes() const { return std::nullopt; }
  // Done when they return; ordered with no queue's work.
  virtual void copy_from_host(void* device, const void* host, int64_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, int64_t bytes) = 0;

  // Memory of the host, uninitialized, from which copies to the device need no other one in between: what
  // fills batches writes them there. So aligned as kernels need it. Throws Error(out_of_memory).
  virtual std::shared_ptr<void> allocate_pinned(int64_t bytes) = 0;

  // A new one. Different executables on one device may be used by different threads, each on its own queue.
  virtual std::shared_ptr<Queue> queue() = 0;

  // Called on another thread, it lets that compile and run as the thread that asked: the CPU with as many
  // threads.
  virtual std::function<void()> settings_of_thread() const {
    return [] {};
  }

  // What only some devices have, such as ThreadedKernels; null where this one has none.
  template <typename T>
  T* extension() {
    return dynamic_cast<T*>(this);
  }
  template <typename T>
  const T* extension() const {
    return dynamic_cast<const T*>(this);
  }

  // "reference", "null", "cpu", "cuda" or "cuda:1"; "cuda:plan-h100" plans for a card that
  // is not there. "cuda:rank=3" is the GPU of the fourth rank of this machine: where there are fewer, ranks
  // share them; "auto:rank=3" takes that one. "cpu:threads=4" computes with so many threads, as do all
  // processor devices that are used from this thread from then on. Any other name is that of a plug-in
  // (tessera/compile/backend.h). "auto" takes the fastest present; why that is not a GPU goes to `fallback`,
  // or "", and once in a process to the log where the caller gives none. Throws Error(unsupported) that says
  // which library was looked for, where, and what went wrong, and Error(device_fault) of a GPU that has
  // failed.
  static std::shared_ptr<Device> open(const std::string& name, std::string* fallback = nullptr);
  // Whether there is a plug-in of that name, be it of use or not; a name is of a-z, 0-9 and _.
  static bool has_plugin(const std::string& backend);
  static std::shared_ptr<Device> reference();
  static std::shared_ptr<Device> null();
  static std::shared_ptr<Device> cpu() { return open("cpu"); }
};

// "device: cpu, AMD EPYC ..., 2 threads", and for people why it is not a GPU where `fallback` says so.
std::string device_summary(const DeviceDescription& device, const std::string& fallback = "");

}  // namespace tessera
