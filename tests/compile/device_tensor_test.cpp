// Inputs and outputs that stay on the device.
#include "tessera/compile/device_tensor.h"

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/feeds.h"

#include "support/detached_device.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

Tensor pair(float a, float b) {
  return Tensor::from<float>({2}, {a, b});
}

std::vector<double> doubles(double a, double b) {
  return {a, b};
}

std::unique_ptr<Executable> compile_sum(const std::shared_ptr<Device>& device) {
  auto executable = compile(*parse_graph(R"(graph g(input %x: fp32[2], input %y: fp32[2]) {
  %sum = add(%x, %y)
  %product = multiply(%x, %y)
  output sum = %sum
  output product = %product
})"),
                            device);
  executable->bind(std::make_shared<Variables>(device));
  return executable;
}

void write(const DeviceTensor& tensor, const Tensor& value) {
  tensor.device().copy_from_host(tensor.memory(), value.raw(), tensor.bytes());
}

TEST(DeviceTensors, KeepForeignMemoryAlive) {
  const auto device = Device::reference();
  bool gone = false;
  {
    const Tensor owner = pair(5, 6);
    auto memory = std::shared_ptr<void>(owner.owner().get(), [&gone, owner](void*) { gone = true; });
    const DeviceTensor tensor = DeviceTensor::wrap(device, DataType::fp32, {2}, std::move(memory));
    const DeviceTensor copy = tensor;
    EXPECT_FALSE(gone);
    EXPECT_EQ(copy.to_host().raw(), owner.raw());  // a view: the host is the device
  }
  EXPECT_TRUE(gone);
}

TEST(DeviceTensors, RefuseWhatIsNotAligned) {
  const Tensor owner(DataType::fp32, {64});
  const std::shared_ptr<void> inside(owner.owner(), static_cast<char*>(owner.owner().get()) + 4);
  EXPECT_ERROR(DeviceTensor::wrap(Device::reference(), DataType::fp32, {2}, inside),
               ErrorCode::invalid_argument, "aligned");
}

// Waited for by whoever reads the contents.
class CountedEvent : public Event {
 public:
  void wait() const override { ++waits; }
  mutable int waits = 0;
};

TEST(DeviceTensors, AreThereAfterTheirEvent) {
  const auto device = Device::reference();
  const auto ready = std::make_shared<CountedEvent>();
  const DeviceTensor x = DeviceTensor::wrap(device, DataType::fp32, {2}, pair(1, 2).owner(), ready);
  x.to_host();
  EXPECT_EQ(ready->waits, 1);
  const auto executable = compile_sum(device);
  executable->stage({{"x", x}});
  executable->stage(Feeds{{"y", pair(3, 4)}});
  EXPECT_EQ(ready->waits, 2);
  EXPECT_EQ(executable->run({}).at("sum").to_doubles(), doubles(4, 6));
}

class DeviceInputs : public ::testing::TestWithParam<bool> {
 protected:
  static std::shared_ptr<Device> device() {
    return GetParam() ? std::make_shared<DetachedDevice>() : Device::reference();
  }
};

TEST_P(DeviceInputs, AreReadWhereTheyLie) {
  const auto there = device();
  const auto executable = compile_sum(there);
  const DeviceTensor x = DeviceTensor::allocate(there, DataType::fp32, {2});
  executable->stage({{"x", x}});
  for (const float value : {1.0F, 5.0F}) {
    write(x, pair(value, 2 * value));
    const auto outputs = executable->run({{"y", pair(10, 20)}});
    EXPECT_EQ(outputs.at("sum").to_doubles(), doubles(value + 10, 2 * value + 20));
  }
  const DeviceTensor other = DeviceTensor::from_host(there, pair(7, 8));
  executable->stage({{"x", other}});
  EXPECT_EQ(executable->run({{"y", pair(1, 1)}}).at("sum").to_doubles(), doubles(8, 9));
  // Given by the host again.
  EXPECT_EQ(executable->run({{"x", pair(1, 2)}, {"y", pair(1, 1)}}).at("sum").to_doubles(), doubles(2, 3));
  EXPECT_ERROR(executable->run({{"y", pair(1, 1)}}), ErrorCode::invalid_argument, "'x'", "missing");
}

TEST_P(DeviceInputs, AreChecked) {
  const auto there = device();
  const auto executable = compile_sum(there);
  const auto stage = [&](const std::string& name, const DeviceTensor& tensor) {
    executable->stage(DeviceFeeds{{name, tensor}});
  };
  const DeviceTensor wide = DeviceTensor::allocate(there, DataType::fp32, {3});
  EXPECT_ERROR(stage("x", wide), ErrorCode::invalid_argument, "'x'", "fp32[2]", "fp32[3]");
  EXPECT_ERROR(stage("z", wide), ErrorCode::invalid_argument, "no input 'z'");
  const DeviceTensor elsewhere = DeviceTensor::allocate(device(), DataType::fp32, {2});
  EXPECT_ERROR(stage("x", elsewhere), ErrorCode::invalid_argument, "'x'", "not on the device");
}

// Each run's own, and the host's in between.
TEST_P(DeviceInputs, ComeWithARun) {
  const auto there = device();
  const auto executable = compile_sum(there);
  const auto expect = [&](double x, double y) {
    EXPECT_EQ(executable->receive().at("sum").to_doubles(), doubles(x + y, x + y));
  };
  executable->submit({{"y", pair(10, 10)}}, {{"x", DeviceTensor::from_host(there, pair(1, 1))}});
  expect(1, 10);
  executable->submit({{"x", pair(2, 2)}, {"y", pair(20, 20)}});
  executable->submit({}, {{"x", DeviceTensor::from_host(there, pair(3, 3))},
                          {"y", DeviceTensor::from_host(there, pair(30, 30))}});
  expect(2, 20);
  executable->submit({{"y", pair(40, 40)}}, {{"x", DeviceTensor::from_host(there, pair(4, 4))}});
  expect(3, 30);
  expect(4, 40);
  EXPECT_ERROR(executable->submit({{"y", pair(1, 1)}}), ErrorCode::invalid_argument, "'x'", "missing");
  const auto submit = [&](const DeviceTensor& tensor) {
    executable->submit({{"y", pair(1, 1)}}, {{"x", tensor}});
  };
  EXPECT_ERROR(submit(DeviceTensor::allocate(there, DataType::fp32, {3})), ErrorCode::invalid_argument, "'x'",
               "fp32[3]");
  EXPECT_ERROR(submit(DeviceTensor::allocate(device(), DataType::fp32, {2})), ErrorCode::invalid_argument,
               "'x'", "not on the device");
}

// They are waited for, and let go when the device has copied them: at the latest two runs after theirs.
TEST_P(DeviceInputs, AreKeptUntilTheyAreRead) {
  const auto there = device();
  const auto executable = compile_sum(there);
  std::vector<std::weak_ptr<void>> given;
  for (int run = 0; run < 6; ++run) {
    const auto ready = std::make_shared<CountedEvent>();
    std::shared_ptr<void> memory = there->allocate(8);
    given.push_back(memory);
    executable->submit({{"y", pair(1, 1)}},
                       {{"x", DeviceTensor::wrap(there, DataType::fp32, {2}, std::move(memory), ready)}});
    EXPECT_GE(ready->waits, 1);
    executable->receive();
    if (run >= 2) {
      EXPECT_TRUE(given[static_cast<size_t>(run) - 2].expired()) << run;
    }
  }
}

// A chain of two executables between which nothing goes to the host.
TEST_P(DeviceInputs, AreOutputsOfOthers) {
  const auto there = device();
  const auto first = compile_sum(there);
  const auto second = compile_sum(there);
  EXPECT_ERROR(first->output("sum"), ErrorCode::invalid_argument, "not run");
  EXPECT_ERROR(first->output("s"), ErrorCode::invalid_argument, "no output 's'");
  EXPECT_ERROR(first->fetch("s", Executable::Fetch::device), ErrorCode::invalid_argument, "no output 's'");
  first->fetch("sum", Executable::Fetch::device);
  const auto outputs = first->run({{"x", pair(1, 2)}, {"y", pair(3, 4)}});
  EXPECT_FALSE(outputs.contains("sum"));
  EXPECT_EQ(outputs.at("product").to_doubles(), doubles(3, 8));
  const DeviceTensor sum = first->output("sum");
  EXPECT_EQ(sum.to_host().to_doubles(), doubles(4, 6));
  second->stage({{"x", sum}, {"y", sum}});
  EXPECT_EQ(second->run({}).at("product").to_doubles(), doubles(16, 36));
  first->fetch("sum", Executable::Fetch::host);
  EXPECT_EQ(first->run({{"x", pair(1, 2)}, {"y", pair(3, 4)}}).at("sum").to_doubles(), doubles(4, 6));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceInputs, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Detached" : "Reference"; });

TEST(DeviceOutputs, NeedNoBuffersOnTheWayToTheHost) {
  const auto device = std::make_shared<DetachedDevice>();
  const auto executable = compile_sum(device);
  executable->stage({{"x", DeviceTensor::from_host(device, pair(1, 2))},
                     {"y", DeviceTensor::from_host(device, pair(3, 4))}});
  for (const char* output : {"sum", "product"}) executable->fetch(output, Executable::Fetch::device);
  executable->run({});
  EXPECT_EQ(device->buffers, 0);
  EXPECT_EQ(executable->output("product").to_host().to_doubles(), doubles(3, 8));
}

}  // namespace
}  // namespace tessera::testing
