// Operators that a GPU has no kernel for: the host computes them.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "device_cuda/cuda_case.h"
#include "support/random_tensor.h"
#include "support/sample_operators.h"

namespace tessera::testing {
namespace {

constexpr const char* kGraph = R"(graph g(input %x: fp32[64, 32], parameter %w: fp32[32, 32]) {
  %a = matmul(%x, %w)
  %b = exp(%a)
  %c = sample_affine(%b, _, %b, %a)
  %d = tanh(%c)
  %e = reduce_sum(%d) {axes = [1]}
  output e = %e
})";

std::vector<std::string> kernels_of(const Executable& executable) {
  std::vector<std::string> kernels;
  for (const NodeReport& node : executable.nodes()) kernels.push_back(node.kernel);
  return kernels;
}

TEST(CudaHostReference, IsPlannedForWhatAGpuLacksAndForNothingElse) {
  register_sample_operators();
  const auto executable = compile(*parse_graph(kGraph), Device::open("cuda:plan-h100"));
  const std::vector<std::string> kernels = kernels_of(*executable);
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "reference.host"), 1);
  EXPECT_GT(kernels.size(), 2U);
}

// Between recorded parts of a run.
TEST(CudaHostReference, RunsBetweenKernelsOfTheGpu) {
  TESSERA_NEEDS_GPU();
  register_sample_operators();
  const auto run = [&](const std::shared_ptr<Device>& device) {
    const auto executable = compile(*parse_graph(kGraph), device);
    const auto variables = std::make_shared<Variables>(device);
    variables->set("w", random_tensor(DataType::fp32, {32, 32}, -0.1, 0.1, 1));
    executable->bind(variables);
    std::vector<Tensor> results;
    for (uint64_t i = 0; i < 4; ++i)
      results.push_back(
          executable->run({{"x", random_tensor(DataType::fp32, {64, 32}, -1, 1, 2 + i)}}).at("e"));
    return results;
  };
  const std::vector<Tensor> actual = run(gpu_or_null());
  const std::vector<Tensor> expected = run(Device::reference());
  // Sums of 32 numbers of at most 1, each of products of 32 terms, in fp32.
  constexpr double kBound = 32 * 1e-5;
  for (size_t i = 0; i < expected.size(); ++i) {
    for (int64_t row = 0; row < expected[i].size(); ++row)
      EXPECT_NEAR(actual[i].at(row), expected[i].at(row), kBound) << "run " << i << ", row " << row;
  }
}

}  // namespace
}  // namespace tessera::testing
