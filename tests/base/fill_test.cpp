#include "tessera/base/fill.h"

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

// Numbers that tell blocks and their places apart, and that every type of numbers without a sign holds.
std::array<double, 4> small_numbers(uint64_t block) {
  std::array<double, 4> numbers{};
  for (uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>((3 * block + i) % 4);
  return numbers;
}

// Of one part, of several, and where the last block is cut; of elements that share a byte as well.
TEST(FillByBlocks, MakesEachElementOfItsBlock) {
  for (const DataType type :
       {DataType::fp32, DataType::fp16, DataType::int64, DataType::uint4, DataType::uint2}) {
    for (const int64_t size : {0, 1, 6, 65536, 200003}) {
      Tensor tensor(type, {size});
      fill_by_blocks(tensor, small_numbers);
      int64_t others = 0;
      for (int64_t i = 0; i < size; ++i) {
        const double number = small_numbers(static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
        others += tensor.at(i) == number ? 0 : 1;
      }
      EXPECT_EQ(others, 0) << to_string(type) << " " << size;
    }
  }
}

TEST(FillByBlocks, DrawsEachBlockOnce) {
  std::vector<std::atomic<int>> times(50001);
  Tensor tensor(DataType::fp32, {200003});
  fill_by_blocks(tensor, [&](uint64_t block) {
    ++times[block];
    return std::array<double, 4>{};
  });
  for (const std::atomic<int>& time : times) ASSERT_EQ(time, 1);
}

}  // namespace
}  // namespace tessera
