// What a device has whose kernels take long to make: several threads make them.
#pragma once

namespace tessera {

// An extension of a device. Its candidates are planned, and their kernels made, by several threads at a time,
// each with the device's settings_of_thread().
class ThreadedKernels {
 public:
  virtual ~ThreadedKernels() = default;

  // So many threads at most.
  virtual unsigned planning_threads() const = 0;
  // Waits for what goes on beside the callers for kernels that are made, such as compilers: after that
  // nothing disturbs a measurement. What went wrong there the kernel's first run says.
  virtual void wait_for_kernels() = 0;
};

}  // namespace tessera
