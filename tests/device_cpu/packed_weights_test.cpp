// Weights of inference in the layouts that kernels want: once for executables of one network.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "device/cpu/device.h"
#include "support/compare.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

// Counts the bytes that are allocated.
class CountingCpu : public cpu::CpuDevice {
 public:
  std::shared_ptr<void> allocate(int64_t bytes) override {
    const std::shared_ptr<void> memory = cpu::CpuDevice::allocate(bytes);
    *live_ += bytes;
    return {memory.get(), [memory, bytes, live = live_](void*) { *live -= bytes; }};
  }
  int64_t live_bytes() const { return *live_; }

 private:
  std::shared_ptr<int64_t> live_ = std::make_shared<int64_t>(0);
};

// A filter for Winograd's convolution, one that is reordered, and a matrix. With two images or more the
// kernels are the same ones.
std::unique_ptr<Graph> network(int64_t batch) {
  return parse_graph(fmt::format(R"(graph g(input %x: fp32[{0}, 12, 12, 24], parameter %a: fp32[48, 3, 3, 24],
  parameter %b: fp32[40, 5, 5, 48], parameter %w: fp32[40, 72]) {{
  %c = convolution(%x, %a) {{dilations = [1, 1], padding_high = [1, 1], padding_low = [1, 1], strides = [1, 1]}}
  %r = relu(%c)
  %d = convolution(%r, %b) {{dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [2, 2]}}
  %p = reduce_sum(%d) {{axes = [1, 2]}}
  %y = matmul(%p, %w)
  output y = %y
}})",
                                 batch));
}

class PackedWeights : public ::testing::Test {
 protected:
  PackedWeights() { set(*variables_, 1); }

  static void set(Variables& variables, uint64_t seed) {
    const std::unique_ptr<Graph> graph = network(2);
    for (const auto& input : graph->inputs()) {
      if (input->role() == InputRole::input) continue;
      variables.set(input->name(),
                    random_tensor(DataType::fp32, input->type().static_shape(), -1, 1, seed++));
    }
  }
  std::unique_ptr<Executable> compile_batch(int64_t batch) const {
    CompileOptions options;
    options.passes.frozen = true;
    return compile(*network(batch), device_, options);
  }
  static Tensor run(Executable& executable, int64_t batch) {
    return executable.run({{"x", random_tensor(DataType::fp32, {batch, 12, 12, 24}, -1, 1, 9)}}).at("y");
  }
  // With variables of its own.
  Tensor alone(int64_t batch, uint64_t seed) const {
    const auto variables = std::make_shared<Variables>(device_);
    set(*variables, seed);
    const auto executable = compile_batch(batch);
    executable->bind(variables);
    return run(*executable, batch);
  }

  std::shared_ptr<CountingCpu> device_ = std::make_shared<CountingCpu>();
  std::shared_ptr<Variables> variables_ = std::make_shared<Variables>(device_);
};

// A square matrix has as many rows as columns: a layer and its gradient read it both ways.
TEST(PackedMatrix, IsNotThatOfItsTransposition) {
  const std::unique_ptr<Graph> graph =
      parse_graph(R"(graph g(input %x: fp32[2, 64], parameter %w: fp32[64, 64]) {
  %a = matmul(%x, %w)
  %b = matmul(%x, %w) {transpose_b = true}
  output a = %a
  output b = %b
})");
  const std::map<std::string, Tensor> inputs = {{"x", random_tensor(DataType::fp32, {2, 64}, -1, 1, 1)}};
  const Tensor w = random_tensor(DataType::fp32, {64, 64}, -1, 1, 2);
  const auto run = [&](const std::shared_ptr<Device>& device) {
    CompileOptions options;
    options.passes.frozen = true;
    const auto executable = compile(*graph, device, options);
    const auto variables = std::make_shared<Variables>(device);
    variables->set("w", w);
    executable->bind(variables);
    return executable->run(inputs);
  };
  const auto expected = run(Device::reference());
  const auto actual = run(Device::cpu());
  // Sums of 64 products of numbers within 1, each addition rounded by 2^-24 of at most 64.
  const Tolerance tolerance{.absolute = 64 * 64 * 6e-8, .relative = 0};
  for (const char* name : {"a", "b"}) expect_close(actual.at(name), expected.at(name), tolerance, name);
}

TEST_F(PackedWeights, AreOneForSeveralBatches) {
  const auto two = compile_batch(2);
  const int64_t before = device_->live_bytes();
  two->bind(variables_);
  const MemoryPlan& plan = two->memory_plan();
  EXPECT_GT(plan.packed_bytes, 0);
  EXPECT_GE(device_->live_bytes() - before, plan.peak_bytes + plan.packed_bytes);
  for (const int64_t batch : {2, 4}) {
    const auto other = compile_batch(batch);
    ASSERT_EQ(other->memory_plan().packed_bytes, plan.packed_bytes);
    const int64_t own = device_->live_bytes();
    other->bind(variables_);
    EXPECT_EQ(device_->live_bytes() - own, other->memory_plan().peak_bytes) << batch;
    EXPECT_TRUE(run(*other, batch).identical(alone(batch, 1))) << batch;
  }
  EXPECT_TRUE(run(*two, 2).identical(alone(2, 1)));
}

TEST_F(PackedWeights, FollowTheVariables) {
  const auto two = compile_batch(2);
  two->bind(variables_);
  set(*variables_, 7);
  two->bind(variables_);
  EXPECT_TRUE(run(*two, 2).identical(alone(2, 7)));
}

}  // namespace
}  // namespace tessera::testing
