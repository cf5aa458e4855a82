// Graphs of ten thousands of nodes are common, and are compiled for each size of batch.
#include <gtest/gtest.h>

#include "support/compile_growth.h"
#include "support/planning_device.h"

namespace tessera::testing {
namespace {

TEST(Compilation, GrowsNearlyLinearlyWithTheGraph) {
  expect_near_linear_compilation(Device::null());
}

// As GPUs ask for it.
TEST(Compilation, GrowsNearlyLinearlyWithGroupedClusters) {
  PassTarget target = Device::null()->pass_target({});
  target.reductions_per_cluster = 4;
  target.values_per_group = 100;
  expect_near_linear_compilation(std::make_shared<PlanningDevice>(target));
}

}  // namespace
}  // namespace tessera::testing
