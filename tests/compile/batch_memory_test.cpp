#include "tessera/compile/batch_memory.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(BatchMemory, ServesAgainWhatATensorLeaves) {
  const BatchMemory memory(Device::reference());
  const void* first = nullptr;
  {
    Tensor tensor = memory.tensor(DataType::fp32, {3, 4});
    first = tensor.raw();
    tensor.data<float>()[11] = 7;
    const Tensor shared = tensor.reshape({12});
    tensor = memory.tensor(DataType::fp32, {3, 4});
    EXPECT_NE(tensor.raw(), first);  // still read
    EXPECT_EQ(shared.at(11), 7);
  }
  const Tensor other = memory.tensor(DataType::fp32, {100});
  const Tensor one = memory.tensor(DataType::int32, {4, 3});
  const Tensor two = memory.tensor(DataType::int32, {4, 3});
  EXPECT_TRUE(one.raw() == first || two.raw() == first);
  EXPECT_NE(other.raw(), first);
}

TEST(BatchMemory, MayGoBeforeItsTensors) {
  Tensor tensor;
  {
    const BatchMemory memory(Device::reference());
    tensor = memory.tensor(DataType::fp32, {1000});
  }
  for (float& value : tensor.data<float>()) value = 1;
  EXPECT_EQ(tensor.at(999), 1);
}

}  // namespace
}  // namespace tessera
