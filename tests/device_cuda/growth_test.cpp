// Plans of large graphs, for a card that is not there.
#include "device_cuda/cuda_case.h"
#include "support/compile_growth.h"

namespace tessera::testing {
namespace {

TEST(CudaPlan, GrowsNearlyLinearlyWithTheGraph) {
  expect_near_linear_compilation(Device::open("cuda:plan-h100"));
}

}  // namespace
}  // namespace tessera::testing
