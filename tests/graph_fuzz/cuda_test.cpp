// Random graphs on a GPU.
#include <gtest/gtest.h>

#include "tessera/base/error.h"

#include "graph_fuzz/device_run.h"
#include "graph_fuzz/seeds.h"
#include "support/gpu.h"

namespace tessera::testing {
namespace {

// After a fault of a kernel no call to the GPU succeeds any more.
bool is_broken(Device& device) {
  try {
    device.queue()->synchronize();
    return false;
  } catch (const Error&) {
    return true;
  }
}

TEST(CudaGraphFuzz, RunsOnTheGpu) {
  const std::shared_ptr<Device> device = opened_or_null([] { return Device::open("cuda"); });
  // Runs with all tests on machines without one; `./test --gpu` refuses to start there.
  if (device == nullptr) GTEST_SKIP() << "no GPU";
  try_seeds(
      "CudaGraphFuzz.RunsOnTheGpu", 60, [&](uint64_t seed) { return check_seed_on(device, seed); },
      [&] { return is_broken(*device); });
}

}  // namespace
}  // namespace tessera::testing
