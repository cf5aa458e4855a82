// Graphs of ten thousands of nodes are common, and are compiled for each size of batch.
#include <gtest/gtest.h>

#include "support/compile_growth.h"

namespace tessera::testing {
namespace {

TEST(Growth, OfCompilationIsNearLinear) {
  expect_near_linear_compilation(Device::null());
}

// As GPUs ask for it.
TEST(Growth, OfCompilationWithGroupedClustersIsNearLinear) {
  CompileOptions options;
  options.passes.reductions_per_cluster = 4;
  options.passes.values_per_group = 100;
  expect_near_linear_compilation(Device::null(), options);
}

}  // namespace
}  // namespace tessera::testing
