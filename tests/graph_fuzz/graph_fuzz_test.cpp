// Random graphs: what every compilation of them computes is what the reference interpreter computes.
#include <gtest/gtest.h>

#include "graph_fuzz/device_run.h"
#include "graph_fuzz/random_graph.h"
#include "graph_fuzz/seeds.h"

namespace tessera::testing {
namespace {

TEST(GraphFuzz, RunsOnTheCpu) {
  const std::shared_ptr<Device> device = Device::cpu();
  try_seeds("GraphFuzz.RunsOnTheCpu", 10, [&](uint64_t seed) { return check_seed_on(device, seed); });
}

TEST(GraphFuzz, TheSameSeedGivesTheSameGraph) {
  EXPECT_EQ(print(*random_graph(7).graph), print(*random_graph(7).graph));
  EXPECT_NE(print(*random_graph(7).graph), print(*random_graph(8).graph));
  const auto block = [](uint64_t seed) { return print(*random_block(seed, BlockSize::planned).graph); };
  EXPECT_EQ(block(7), block(7));
  EXPECT_NE(block(7), block(8));
}

}  // namespace
}  // namespace tessera::testing
