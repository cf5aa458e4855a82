#include "tessera/device/common/channel_order.h"

#include <gtest/gtest.h>

namespace tessera::backend {
namespace {

using Extents = std::vector<int64_t>;

TEST(ChannelOrder, NamesChannelsAfterTheImagesAndLeavesMemoryAsItIs) {
  const Extents dims = channels_second({2, 5, 7, 3});
  EXPECT_EQ(dims, (Extents{2, 3, 5, 7}));
  EXPECT_EQ(channels_last_strides(dims), (Extents{105, 1, 21, 3}));
}

TEST(ChannelOrder, TakesAnyNumberOfSpatialAxes) {
  EXPECT_EQ(channels_second({2, 3}), (Extents{2, 3}));
  EXPECT_EQ(channels_last_strides({2, 3}), (Extents{3, 1}));
  EXPECT_EQ(channels_last_strides({2, 3, 4, 5, 6}), (Extents{360, 1, 90, 18, 3}));
}

}  // namespace
}  // namespace tessera::backend
