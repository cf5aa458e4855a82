// The interface of a backend: memory, and candidate kernels for nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/clock.h"
#include "tessera/compile/kernel.h"
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

// Work that was recorded once and is launched many times, such as a CUDA graph.
class Recording {
 public:
  virtual ~Recording() = default;
  // Enqueues the whole of it; pointers are those of the recording.
  virtual void launch() = 0;
};

// Points of time in the work of a device, taken by the device itself.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  // Enqueues the next point. In work that is being recorded it is taken anew at every launch.
  virtual void mark() = 0;
  // Waits for the device. All points in the order of their marks, on the host's clock.
  virtual std::vector<Clock::time_point> points() = 0;
};

// Memory of a device that gets its next contents from the host while the device works with the present ones.
class InputBuffer {
 public:
  virtual ~InputBuffer() = default;
  // Where the device finds the present contents; stays the same.
  virtual const void* memory() const = 0;
  // Begins to copy the next contents, beside the device's work. The host's memory is free when this returns.
  virtual void load(const void* host) = 0;
  // For the work that is enqueued from now on, what was loaded last are the present contents.
  virtual void show() = 0;
};

// A value on its way to the host while the device goes on.
class OutputBuffer {
 public:
  virtual ~OutputBuffer() = default;
  // Enqueues the copy of a value as it is behind the work enqueued so far.
  virtual void begin(const void* device) = 0;
  // Waits for that copy alone; its memory is valid until the next begin().
  virtual const void* finish() = 0;
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
  // Told before candidates are asked which nodes there will be: begins in the background what takes long to
  // make for them. `tuned`: candidates for the tuner will be asked too. The work ends with what is returned,
  // at the latest; the nodes outlive that. Null: none.
  virtual std::shared_ptr<void> prepare_kernels(const std::vector<KernelRequest>& requests,
                                                bool tuned) const {
    return nullptr;
  }
  // True when candidates of this node are worth timing; otherwise the first that does not refuse is taken.
  virtual bool tunable(const Node& node) const { return false; }

  // In bytes, of what allocate() gives and of every block of an arena; a multiple of kMemoryAlignment.
  virtual int64_t memory_alignment() const { return kMemoryAlignment; }
  // So aligned, zero-filled. Throws Error(out_of_memory).
  virtual std::shared_ptr<void> allocate(int64_t bytes) = 0;
  // The bytes that allocate() could still give; none where the device does not know.
  virtual std::optional<int64_t> free_bytes() const { return std::nullopt; }
  // The most bytes that what allocate() gave had at a time since this process opened the device; none where
  // the device does not count.
  virtual std::optional<int64_t> peak_bytes() const { return std::nullopt; }
  virtual void copy_from_host(void* device, const void* host, int64_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, int64_t bytes) = 0;
  // Between two buffers of the device.
  virtual void copy(void* target, const void* source, int64_t bytes) = 0;
  virtual void fill(void* device, int byte, int64_t bytes) = 0;
  virtual void synchronize() {}

  // Buffers of so many bytes. Null where the device does not work beside the host; plain copies do as well
  // there.
  virtual std::unique_ptr<InputBuffer> input_buffer(int64_t bytes) { return nullptr; }
  virtual std::unique_ptr<OutputBuffer> output_buffer(int64_t bytes) { return nullptr; }

  // Records what `work` enqueues (kernels, copies between buffers of the device) instead of running it. Null
  // where the device cannot record; then `work` was not called. What `work` runs must have run before.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) { return nullptr; }

  // A timer for at most so many marks. Null where the device does not measure its own work; the host's clock
  // can, around work that it waits for.
  virtual std::unique_ptr<DeviceTimer> timer(size_t marks) { return nullptr; }

  // "reference", "null", "cpu", "cuda" or "cuda:1"; "cuda:plan-h100" plans for a card that
  // is not there. "cpu:threads=4" computes with so many threads, as do all processor devices that are used
  // from this thread from then on. "auto" takes the fastest present; `fallback`, if given, gets why that is
  // not a GPU, or "". Throws Error(unsupported) that says which library was looked for, where, and what went
  // wrong.
  static std::shared_ptr<Device> open(const std::string& name, std::string* fallback = nullptr);
  static std::shared_ptr<Device> reference();
  static std::shared_ptr<Device> null();
  static std::shared_ptr<Device> cpu() { return open("cpu"); }
};

// "device: cpu, AMD EPYC ..., 2 threads", and for people why it is not a GPU where `fallback` says so.
std::string device_summary(const DeviceDescription& device, const std::string& fallback = "");

// What a plug-in library exports under the name kPluginEntry, with C linkage; the host checks the version
// first.
inline constexpr int kPluginVersion = 4;
struct Plugin {
  int version = kPluginVersion;
  Device* (*create)(const char* options);  // may throw Error
};
inline constexpr const char* kPluginEntry = "tessera_plugin";

}  // namespace tessera
