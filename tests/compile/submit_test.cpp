// Runs in two halves: on the host, and on a device that works beside it.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "support/detached_device.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

using testing::DetachedDevice;

// Each run adds x to the sum; the outputs are the sum of before, an input and a product.
std::unique_ptr<Executable> compile_sum(const std::shared_ptr<Device>& device) {
  auto executable =
      compile(*parse_graph(R"(graph g(input %x: fp32[2], input %y: fp32[2], state %sum: fp32[2]) {
  %next = add(%sum, %x)
  %product = multiply(%x, %y)
  output before = %sum
  output x = %x
  output product = %product
  update %sum = %next
})"),
              device);
  auto variables = std::make_shared<Variables>(device);
  variables->set("sum", Tensor(DataType::fp32, {2}));
  executable->bind(variables);
  return executable;
}

std::map<std::string, Tensor> inputs_of(float x) {
  return {{"x", Tensor::from<float>({2}, {x, 2 * x})}, {"y", Tensor::from<float>({2}, {10, x})}};
}

void expect_outputs(const std::map<std::string, Tensor>& outputs, double before, double x) {
  EXPECT_EQ(outputs.at("before").to_doubles(), (std::vector<double>{before, 2 * before}));
  EXPECT_EQ(outputs.at("x").to_doubles(), (std::vector<double>{x, 2 * x}));
  EXPECT_EQ(outputs.at("product").to_doubles(), (std::vector<double>{10 * x, 2 * x * x}));
}

class Submitting : public ::testing::TestWithParam<bool> {
 protected:
  static std::shared_ptr<Device> device() {
    return GetParam() ? std::make_shared<DetachedDevice>() : Device::reference();
  }
};

TEST_P(Submitting, GivesTheOutputsInOrder) {
  const auto executable = compile_sum(device());
  executable->submit(inputs_of(1));
  double before = 0;
  for (int run = 2; run < 10; ++run) {
    executable->submit(inputs_of(static_cast<float>(run)));
    expect_outputs(executable->receive(), before, run - 1);
    before += run - 1;
  }
  expect_outputs(executable->receive(), before, 9);
  expect_outputs(executable->run(inputs_of(3)), before + 9, 3);
}

TEST_P(Submitting, StagedInputsServeLaterRunsOnly) {
  const auto executable = compile_sum(device());
  executable->stage(inputs_of(1));
  executable->submit({});
  executable->stage(inputs_of(2));
  executable->submit({});
  expect_outputs(executable->receive(), 0, 1);
  expect_outputs(executable->receive(), 1, 2);
  expect_outputs(executable->run({}), 3, 2);
}

TEST_P(Submitting, RefusesMoreThanItKeepsAndOtherRunsMeanwhile) {
  const auto executable = compile_sum(device());
  EXPECT_ERROR(executable->receive(), ErrorCode::invalid_argument, "'g'", "no run");
  executable->submit(inputs_of(1));
  EXPECT_ERROR(executable->run(inputs_of(1)), ErrorCode::invalid_argument, "under way");
  EXPECT_ERROR(executable->trace(inputs_of(1), 1), ErrorCode::invalid_argument, "under way");
  EXPECT_ERROR(executable->profile(inputs_of(1)), ErrorCode::invalid_argument, "under way");
  executable->submit(inputs_of(2));
  EXPECT_ERROR(executable->submit(inputs_of(3)), ErrorCode::invalid_argument, "2 runs");
  executable->discard();
  EXPECT_ERROR(executable->receive(), ErrorCode::invalid_argument, "no run");
  // Both took place, the refused ones did not.
  expect_outputs(executable->run(inputs_of(5)), 3, 5);
}

TEST_P(Submitting, WhatIsRefusedIsNotUnderWay) {
  const auto executable = compile_sum(device());
  executable->submit(inputs_of(1));
  EXPECT_ERROR(executable->submit({{"x", Tensor(DataType::fp32, {3})}}), ErrorCode::invalid_argument, "'x'");
  expect_outputs(executable->receive(), 0, 1);
  EXPECT_ERROR(executable->receive(), ErrorCode::invalid_argument, "no run");
}

INSTANTIATE_TEST_SUITE_P(Devices, Submitting, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Detached" : "Reference"; });

TEST(SubmittingToADevice, NeitherWaitsNorAllocatesOnceItIsUnderWay) {
  const auto device = std::make_shared<DetachedDevice>();
  const auto executable = compile_sum(device);
  executable->submit(inputs_of(1));
  executable->submit(inputs_of(1));
  executable->receive();
  const int waits = device->waits;
  const int buffers = device->buffers;
  EXPECT_EQ(buffers, 2 + 2 * 3);
  for (int run = 0; run < 10; ++run) {
    executable->submit(inputs_of(1));
    executable->receive();
  }
  EXPECT_EQ(device->waits, waits);
  EXPECT_EQ(device->buffers, buffers);
}

TEST(SubmittingToADevice, RunsAloneNeedOneSetOfBuffers) {
  const auto device = std::make_shared<DetachedDevice>();
  const auto executable = compile_sum(device);
  const int waits = device->waits;
  for (int run = 0; run < 4; ++run) executable->run(inputs_of(1));
  EXPECT_EQ(device->buffers, 2 + 3);
  EXPECT_EQ(device->waits, waits);
}

}  // namespace
}  // namespace tessera
