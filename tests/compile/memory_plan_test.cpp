#include "tessera/compile/memory_plan.h"

#include <gtest/gtest.h>

#include "tessera/base/random.h"

#include "support/expect_error.h"

namespace tessera {
namespace {

TEST(MemoryPlan, ReusesMemoryOfTheDead) {
  MemoryPlan plan;
  plan.blocks = {{"a", 100, 0, 1}, {"b", 100, 1, 2}, {"c", 100, 2, 3}};
  assign_offsets(plan);
  verify(plan);
  EXPECT_EQ(plan.peak_bytes, 256);  // two aligned blocks
  EXPECT_EQ(plan.lower_bound_bytes, 256);
}

TEST(MemoryPlan, IsLegalAndNearTheBoundForRandomLives) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Random random(seed);
    MemoryPlan plan;
    for (uint64_t i = 0; i < 300; ++i) {
      const auto first = static_cast<int64_t>(random.below(3 * i, 400));
      const auto life = static_cast<int64_t>(random.below(3 * i + 1, 40));
      plan.blocks.push_back(
          {std::to_string(i), static_cast<int64_t>(random.below(3 * i + 2, 100000)), first, first + life});
    }
    assign_offsets(plan);
    verify(plan);
    EXPECT_GE(plan.peak_bytes, plan.lower_bound_bytes);
    EXPECT_LE(static_cast<double>(plan.peak_bytes), 1.35 * static_cast<double>(plan.lower_bound_bytes))
        << seed;
  }
}

TEST(MemoryPlan, VerifierFindsOverlapsAndStrays) {
  MemoryPlan plan;
  plan.blocks = {{"a", 100, 0, 5, 0}, {"b", 100, 3, 9, 64}};
  plan.peak_bytes = 1000;
  EXPECT_ERROR(verify(plan), ErrorCode::internal, "'a'", "'b'", "overlap");
  plan.blocks[1].offset = 128;
  verify(plan);
  plan.blocks[1].offset = 960;
  EXPECT_ERROR(verify(plan), ErrorCode::internal, "'b'", "outside");
}

TEST(MemoryPlan, NamesTheLargestBlocksOfThePeak) {
  MemoryPlan plan;
  plan.blocks = {{"early", 1000, 0, 0}, {"small", 10, 1, 2}, {"large", 900, 1, 2}, {"medium", 500, 2, 2}};
  const auto peak = peak_blocks(plan, 2);
  ASSERT_EQ(peak.size(), 2u);
  EXPECT_EQ(peak[0]->name, "large");
  EXPECT_EQ(peak[1]->name, "medium");
}

}  // namespace
}  // namespace tessera
