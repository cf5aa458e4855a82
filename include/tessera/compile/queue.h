// The order in which a device works: queues, and what is tied to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/base/clock.h"

namespace tessera {

// A point in the work of a queue.
class Event {
 public:
  virtual ~Event() = default;
  // Returns when the device has come there.
  virtual void wait() const = 0;
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
  // Waits for the queue. All points in the order of their marks, on the host's clock.
  virtual std::vector<Clock::time_point> points() = 0;
};

// Memory of a device that gets its next contents from the host while the device works with the present ones.
class InputBuffer {
 public:
  virtual ~InputBuffer() = default;
  // Where the device finds the present contents; stays the same.
  virtual const void* memory() const = 0;
  // Begins to copy the next contents, beside the device's work. What is pinned for the device is sent from
  // where it lies, and kept alive until it has arrived: it must not change before. Other memory is free when
  // this returns.
  virtual void load(const std::shared_ptr<void>& host) = 0;
  // For the work that is enqueued from now on, what was loaded last are the present contents.
  virtual void show() = 0;
};

// A value on its way to the host while the device goes on.
class OutputBuffer {
 public:
  virtual ~OutputBuffer() = default;
  // Enqueues the copy of a value as it is after the work enqueued so far.
  virtual void begin(const void* device) = 0;
  // Waits for that copy alone. The memory is the caller's as long as he holds it; no later copy goes there
  // before.
  virtual std::shared_ptr<void> finish() = 0;
};

// A device does the work of one queue in the order in which it was enqueued; work of different queues may
// overlap, where nothing orders it. Where the device is the host all of it is done at once. One thread at a
// time uses a queue, but any may call mark() and synchronize(). What a queue makes must not outlive it, and
// memory that its work uses must not be freed before that is done.
class Queue {
 public:
  virtual ~Queue() = default;

  // Between two buffers of the device.
  virtual void copy(void* target, const void* source, int64_t bytes) = 0;
  virtual void fill(void* device, int byte, int64_t bytes) = 0;
  // The host's memory is free when this returns.
  virtual void copy_from_host(void* device, const void* host, int64_t bytes) = 0;
  // Waits for the work enqueued so far, and for the copy.
  virtual void copy_to_host(void* host, const void* device, int64_t bytes) = 0;

  // After all that was enqueued so far.
  virtual std::shared_ptr<Event> mark() = 0;
  // What is enqueued from now on begins after the event; the host waits for one that is no queue's of this
  // device.
  virtual void wait_for(const Event& event) = 0;
  // Waits for all that was enqueued so far, on its lane too.
  virtual void synchronize() = 0;

  // A queue for work that goes on beside this one's, such as collectives beside compute: ordered with it by
  // mark() and wait_for() alone, and part of its recordings where what is recorded here waits for it at the
  // end. It is this queue's, always the same. Null where the device has none.
  virtual Queue* lane() { return nullptr; }

  // Buffers of so many bytes. Null where the device does not work beside the host; plain copies do as well
  // there.
  virtual std::unique_ptr<InputBuffer> input_buffer(int64_t bytes) { return nullptr; }
  virtual std::unique_ptr<OutputBuffer> output_buffer(int64_t bytes) { return nullptr; }

  // Records what `work` enqueues here (kernels, copies between buffers of the device) instead of running it;
  // it is launched here. Null where the device cannot record; then `work` was not called. What `work` runs
  // must have run before.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) { return nullptr; }

  // A timer for at most so many marks. Null where the device does not measure its own work; the host's clock
  // can, around work that it waits for.
  virtual std::unique_ptr<DeviceTimer> timer(size_t marks) { return nullptr; }
};

}  // namespace tessera
