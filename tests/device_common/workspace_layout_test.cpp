#include "tessera/device/common/workspace_layout.h"

#include <gtest/gtest.h>

namespace tessera::backend {
namespace {

TEST(WorkspaceLayout, ArraysFollowEachOtherAligned) {
  WorkspaceLayout layout;
  const auto first = layout.book<float>(3);
  const auto none = layout.book<float>(0);
  const auto second = layout.book<double>(9);
  const auto third = layout.book<std::byte>(64);
  constexpr int64_t kStep = WorkspaceLayout::kAlignment;
  std::byte workspace[3 * kStep];
  EXPECT_EQ(static_cast<void*>(first.in(workspace)), workspace);
  EXPECT_EQ(static_cast<void*>(none.in(workspace)), workspace + kStep);
  EXPECT_EQ(static_cast<void*>(second.in(workspace)), workspace + kStep);
  EXPECT_EQ(third.in(workspace), workspace + 2 * kStep);
  EXPECT_EQ(layout.bytes(), 3 * kStep);
}

}  // namespace
}  // namespace tessera::backend
