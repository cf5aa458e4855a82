// Integers of all sizes in clusters.
#include "support/integer_arithmetic.h"

#include "device_cuda/cuda_case.h"

namespace tessera::testing {
namespace {

TEST(CudaIntegers, AreComputedInOneCluster) {
  const std::shared_ptr<Device> card = Device::open("cuda:plan-h100");
  for (const DataType type : kIntegersOfAllSizes) {
    const auto executable = compile(*integer_arithmetic(type).graph, card);
    ASSERT_EQ(executable->nodes().size(), 1U) << to_string(type);
    EXPECT_EQ(executable->nodes().front().kernel, "generated.cluster") << to_string(type);
  }
}

TEST(CudaIntegers, CudaWrapInsideAClusterToo) {
  TESSERA_NEEDS_GPU();
  for (const DataType type : kIntegersOfAllSizes) {
    const Case own = integer_arithmetic(type);
    const Tolerances exact(own.graph->outputs().size());
    expect_as_reference(gpu_or_null(), own, exact);
    expect_as_reference(gpu_or_null(), own, exact, true);
  }
}

}  // namespace
}  // namespace tessera::testing
