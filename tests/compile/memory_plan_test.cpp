#include "tessera/compile/memory_plan.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/base/rounding.h"

#include "compile/placed_blocks.h"
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

TEST(MemoryPlan, AlignsAsMuchAsTheDeviceAsksFor) {
  MemoryPlan plan{.alignment = 256};
  plan.blocks = {{"a", 64, 0, 1}, {"b", 100, 0, 1}, {"c", 300, 1, 2}};
  assign_offsets(plan);
  verify(plan);
  for (const MemoryBlock& block : plan.blocks) EXPECT_EQ(block.offset % 256, 0) << block.name;
  plan.blocks[0].offset += 64;
  EXPECT_THROW(verify(plan), Error);
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

int64_t lowest_free(const MemoryPlan& plan, const std::vector<size_t>& placed,
                    const std::vector<int64_t>& offsets, const MemoryBlock& block) {
  const auto is_free = [&](int64_t offset) {
    return std::none_of(placed.begin(), placed.end(), [&](size_t i) {
      const MemoryBlock& other = plan.blocks[i];
      const bool together = other.first <= block.last && block.first <= other.last;
      return together && offset < offsets[i] + round_up(other.bytes, plan.alignment) &&
             offsets[i] < offset + round_up(block.bytes, plan.alignment);
    });
  };
  int64_t offset = 0;
  while (!is_free(offset)) offset += plan.alignment;
  return offset;
}

// Short lives, of which few meet, and long ones, of which all do.
TEST(MemoryPlan, PlacesEachBlockAsLowAsItFits) {
  for (const uint64_t longest : {2, 20, 400}) {
    const Random random(longest);
    MemoryPlan plan{.alignment = 16};
    for (uint64_t i = 0; i < 400; ++i) {
      const auto first = static_cast<int64_t>(random.below(3 * i, 400));
      const auto life = static_cast<int64_t>(random.below(3 * i + 1, longest));
      plan.blocks.push_back(
          {std::to_string(i), 1 + static_cast<int64_t>(random.below(3 * i + 2, 100)), first, first + life});
    }
    PlacedBlocks blocks(plan);
    std::vector<size_t> placed;
    for (size_t i = 0; i < plan.blocks.size(); ++i) {
      const int64_t expected = lowest_free(plan, placed, blocks.offsets(), plan.blocks[i]);
      blocks.place(i);
      ASSERT_EQ(blocks.offsets()[i], expected) << longest << " " << i;
      placed.push_back(i);
    }
  }
}

TEST(MemoryPlan, VerifierLooksAtAllThatAreAlive) {
  // 'c' reaches over the end of 'b' when 'a', between them in the arena, is dead.
  MemoryPlan plan;
  plan.blocks = {{"b", 64, 0, 9, 0}, {"a", 64, 0, 2, 64}, {"d", 64, 0, 9, 192}, {"c", 192, 3, 4, 64}};
  plan.peak_bytes = 1000;
  EXPECT_ERROR(verify(plan), ErrorCode::internal, "'c' and 'd' overlap at offset 192");
  plan.blocks[3].bytes = 128;
  verify(plan);
  plan.blocks[3].first = 2;
  EXPECT_ERROR(verify(plan), ErrorCode::internal, "'a'", "'c'", "overlap at offset 64");
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

TEST(MemoryPlan, SaysWhatDoesNotFitAndWhatIsLargest) {
  MemoryPlan plan;
  for (int64_t i = 1; i <= 7; ++i) {
    plan.blocks.push_back(
        {"value" + std::to_string(i), i << 20, 0, 0, -1, "fp32[" + std::to_string(i) + "]"});
  }
  assign_offsets(plan);
  plan.variable_bytes = int64_t{4} << 20;
  const int64_t mebibyte = int64_t{1} << 20;
  check_fits(plan, "g", 32 * mebibyte);
  check_fits(plan, "g", 0);
  check_fits(plan, "g", 32 * mebibyte, 28 * mebibyte);  // the variables are there already
  EXPECT_ERROR(check_fits(plan, "g", 31 * mebibyte), ErrorCode::out_of_memory, "'g'", "32.0 MiB", "31.0 MiB",
               "value7 fp32[7] 7.0 MiB, value6", "value3 fp32[3]", "smaller batch", "recompute");
  EXPECT_ERROR(check_fits(plan, "g", 100 * mebibyte, 27 * mebibyte), ErrorCode::out_of_memory,
               "27.0 MiB free of 100.0 MiB");
  EXPECT_EQ(
      memory_summary(plan, 100 * mebibyte),
      "memory: 32.0 MiB (28.0 MiB for values between nodes, 4.0 MiB for parameters and states) of 100.0 MiB");
  plan.persistent_bytes = 2 * mebibyte;
  const std::string once = ", 2.0 MiB for what is made of them once)";
  EXPECT_TRUE(memory_summary(plan, 0).ends_with("4.0 MiB for parameters and states" + once));
  check_fits(plan, "g", 34 * mebibyte, 30 * mebibyte);
  EXPECT_ERROR(check_fits(plan, "g", 33 * mebibyte), ErrorCode::out_of_memory, "34.0 MiB", once.c_str());
  EXPECT_ERROR(check_fits(plan, "g", 34 * mebibyte, 29 * mebibyte), ErrorCode::out_of_memory, "29.0 MiB");
}

}  // namespace
}  // namespace tessera
