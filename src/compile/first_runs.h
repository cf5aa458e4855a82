// Runs of kernels for what their first one loads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "tessera/compile/device.h"
#include "tessera/compile/kernel.h"

namespace tessera {

// Several threads at a time run kernels that say they load much at first. All runs share one memory for
// inputs and outputs, zeros at first and then what others leave: results mean nothing. What goes wrong is
// left to a run that counts.
class FirstRuns {
 public:
  explicit FirstRuns(Device& device) : device_(device) {}

  // Said of each request before the first run.
  void expect(const KernelRequest& request);
  // Done when it returns; nothing where the kernel loads little.
  void run(Kernel& kernel, const KernelRequest& request);

 private:
  char* memory();
  int64_t place_of(const Value& value) const;

  Device& device_;
  int64_t bytes_ = 0;             // that the largest request takes
  std::mutex mutex_;              // guards what follows
  std::shared_ptr<void> memory_;  // from the first run on
};

}  // namespace tessera
