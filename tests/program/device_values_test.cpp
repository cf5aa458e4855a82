// What islands make stays on a device whose memory is its own.
#include "program/program_test.h"
#include "support/detached_device.h"

namespace tessera::program {
namespace {

using testing::DetachedDevice;
using Values = std::vector<double>;

constexpr int64_t kCount = 1000;
constexpr int64_t kBytes = 4 * kCount;
constexpr int64_t kIndexBytes = 8;

const TensorType kVector{DataType::fp32, {Dimension::symbol("n")}};

Tensor counting_up(float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < kCount; ++i) values.push_back(step * static_cast<float>(i % 3));
  return numbers(values);
}

struct DeviceValues : ::testing::Test {
  std::shared_ptr<DetachedDevice> device = std::make_shared<DetachedDevice>();

  Runner runner(Block block) { return Runner(module_of(std::move(block)), {.devices = {device}}); }
};

// The host reads how many elements are taken, and what the module gives.
TEST_F(DeviceValues, TheHostReadsWhatItLooksAtAlone) {
  Block block{.name = "main"};
  block.inputs = {declare("x", kVector), declare("few", kVector)};
  block.outputs = {{"taken", "", {}}};
  block.instructions = {instruction("add", {"x", "x"}, {"twice"}), instruction("sum", {"few"}, {"n"}),
                        instruction("take", {"twice", "n"}, {"taken"})};
  Runner run = runner(std::move(block));
  const Item x = counting_up(1);
  for (const int64_t taken : {2, 3, 2}) {
    device->bytes_to_host = 0;
    device->bytes_from_host = 0;
    const auto outputs = run.run({{"x", x}, {"few", numbers({static_cast<float>(taken), 0})}});
    EXPECT_EQ(values_of(outputs, "taken"), taken == 2 ? (Values{0, 2}) : (Values{0, 2, 4}));
    EXPECT_EQ(device->bytes_to_host, kIndexBytes + 4 * taken);
    EXPECT_EQ(device->bytes_from_host, kBytes + 8);
  }
}

// What an iteration hands on stays there, and what all read of the values around them goes there once.
TEST_F(DeviceValues, BodiesHandOnWhatTheyCarry) {
  auto body = std::make_shared<Block>();
  body->name = "body";
  body->inputs = {declare("before", kVector)};
  body->outputs = {{"after", "", {}}};
  body->instructions = {instruction("add", {"before", "around"}, {"after"})};
  Block block{.name = "main"};
  block.inputs = {declare("times", kVector), declare("start", kVector), declare("around", kVector)};
  block.outputs = {{"end", "", {}}};
  block.instructions = {instruction("repeat", {"times", "start"}, {"end"})};
  prepare(*body, &block);
  block.instructions[0].arguments["body"] = std::shared_ptr<const Block>(body);
  Runner run = runner(std::move(block));
  const Tensor around = counting_up(1);
  const auto expect = [&](float times, float step) {
    device->bytes_to_host = 0;
    device->bytes_from_host = 0;
    const auto outputs =
        run.run({{"times", numbers({times})}, {"start", counting_up(10)}, {"around", around}});
    const Values end = values_of(outputs, "end");
    for (size_t i : {0, 1, 2, 999}) EXPECT_EQ(end[i], (10 + times * step) * static_cast<double>(i % 3)) << i;
    EXPECT_EQ(device->bytes_to_host, kBytes);
    EXPECT_EQ(device->bytes_from_host, 2 * kBytes);
  };
  expect(7, 1);
  // The caller may change what it gives between two runs.
  for (int64_t i = 0; i < kCount; ++i) const_cast<Tensor&>(around).set(i, 2 * (i % 3));
  expect(4, 2);
}

// What was given stays what it was, however often the island runs.
TEST_F(DeviceValues, OutputsOutliveTheRunner) {
  Block block{.name = "main"};
  block.inputs = {declare("x", kVector)};
  block.outputs = {{"y", "", {}}};
  block.instructions = {instruction("add", {"x", "x"}, {"y"})};
  std::map<std::string, Item> first;
  {
    Runner run = runner(std::move(block));
    first = run.run({{"x", numbers({1, 2})}});
    run.run({{"x", numbers({5, 6})}});
  }
  EXPECT_EQ(first.at("y").device_tensor(), nullptr);
  EXPECT_EQ(values_of(first, "y"), (Values{2, 4}));
}

}  // namespace
}  // namespace tessera::program
