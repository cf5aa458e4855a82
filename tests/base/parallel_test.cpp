#include "tessera/base/parallel.h"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Parallel, DoesEachThingOnce) {
  for (const int64_t count : {0, 1, 1000}) {
    std::vector<std::atomic<int>> times(static_cast<size_t>(count));
    for_each_in_parallel(count, [&](int64_t i) { ++times[static_cast<size_t>(i)]; });
    for (const std::atomic<int>& time : times) EXPECT_EQ(time, 1);
  }
}

TEST(Parallel, EndsWithWhatWorkThrowsOrWhenItIsToStop) {
  std::atomic<int64_t> done{0};
  const auto fail_at_ten = [&](int64_t i) {
    if (i == 10) throw std::runtime_error("ten");
    ++done;
  };
  EXPECT_THROW(for_each_in_parallel(1'000'000'000, fail_at_ten), std::runtime_error);
  EXPECT_LT(done, 1'000'000'000);
  std::atomic<bool> stop{false};
  for_each_in_parallel(
      1'000'000'000, [&](int64_t i) { stop = stop || i == 10; }, &stop);
  EXPECT_TRUE(stop);
}

}  // namespace
}  // namespace tessera
