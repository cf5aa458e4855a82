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

class CountedEvent : public Event {
 public:
  explicit CountedEvent(int& waits) : waits_(waits) {}
  void wait() const override { ++waits_; }

 private:
  int& waits_;
};

// The device may write until the event: nobody gets the block before.
TEST(BatchMemory, BlocksOfTheDeviceServeAgainAfterTheirEvent) {
  const BatchMemory memory(Device::reference());
  int waits = 0;
  const void* first = nullptr;
  {
    const std::shared_ptr<DeviceBlock> block = memory.block(100);
    first = block->memory();
    block->written_after(std::make_shared<CountedEvent>(waits));
    EXPECT_NE(memory.block(100)->memory(), first);
    EXPECT_EQ(waits, 0);
  }
  EXPECT_EQ(waits, 1);
  const std::shared_ptr<DeviceBlock> one = memory.block(100);
  const std::shared_ptr<DeviceBlock> two = memory.block(100);
  EXPECT_TRUE(one->memory() == first || two->memory() == first);
  EXPECT_EQ(one->written(), nullptr);
  EXPECT_NE(memory.tensor(DataType::uint8, {100}).raw(), first);  // pinned memory is of another kind
}

}  // namespace
}  // namespace tessera
