#include "device/cpu/panels/blocks.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "device/cpu/panels/panel_product.h"

namespace tessera::cpu {
namespace {

class BlocksTest : public ::testing::Test {
 protected:
  void SetUp() override { omp_set_num_threads(2); }
  void TearDown() override { omp_set_num_threads(threads_); }

 private:
  int threads_ = omp_get_max_threads();
};

TEST_F(BlocksTest, AreMultiplesOfPanelRows) {
  const Blocks blocks = cut_into_blocks(1000, 48);
  EXPECT_EQ(blocks.size % kPanelRows, 0);
  EXPECT_LE(blocks.size, 48);
  EXPECT_EQ(blocks.parts, 2);
  EXPECT_EQ(blocks.block(0).begin, 0);
  EXPECT_EQ(blocks.block(blocks.count() - 1).end, 1000);
}

// 25 rounded up to 30 would leave 19 to the other thread.
TEST_F(BlocksTest, AreEvenWhereMultiplesWouldNotBe) {
  EXPECT_EQ(cut_into_blocks(49, 48).size, 25);
  EXPECT_EQ(cut_into_blocks(64, 48).size, 36);
  EXPECT_EQ(cut_into_blocks(4, 48).count(), 1);
}

TEST_F(BlocksTest, AsFewAsTheLargestAllows) {
  const Blocks blocks = cut_evenly(128, 48, 6);
  EXPECT_EQ(blocks.count(), 3);
  EXPECT_EQ(blocks.size, 48);
  EXPECT_EQ(cut_evenly(16, 48, 6).count(), 1);
}

}  // namespace
}  // namespace tessera::cpu
