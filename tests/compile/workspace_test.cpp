// Executables that share a workspace: memory for the largest of them.
#include "tessera/compile/workspace.h"

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "support/counting_device.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

std::unique_ptr<Graph> graph_of(int64_t rows) {
  return parse_graph(fmt::format(R"(graph g(input %x: fp32[{0}, 64], parameter %w: fp32[64, 64]) {{
  %a = matmul(%x, %w)
  %b = tanh(%a)
  %c = matmul(%b, %w)
  %d = reduce_sum(%c) {{axes = [1]}}
  output d = %d
}})",
                                 rows));
}

Tensor input_of(int64_t rows) {
  return random_tensor(DataType::fp32, {rows, 64}, -1, 1, static_cast<uint64_t>(rows));
}

// The sizes in the order given, each compiled, bound and run; then all of them again.
std::vector<Tensor> run_sizes(const std::shared_ptr<Device>& device, const std::vector<int64_t>& sizes,
                              const CompileOptions& options, int64_t* arena_bytes = nullptr) {
  const auto variables = std::make_shared<Variables>(device);
  variables->set("w", random_tensor(DataType::fp32, {64, 64}, -1, 1, 1));
  std::vector<std::unique_ptr<Executable>> executables;
  std::vector<Tensor> results;
  for (const int64_t rows : sizes) {
    executables.push_back(compile(*graph_of(rows), device, options));
    executables.back()->bind(variables);
    results.push_back(executables.back()->run({{"x", input_of(rows)}}).at("d"));
    if (arena_bytes != nullptr)
      *arena_bytes = std::max(*arena_bytes, executables.back()->memory_plan().peak_bytes);
  }
  for (size_t i = 0; i < sizes.size(); ++i)
    results.push_back(executables[i]->run({{"x", input_of(sizes[i])}}).at("d"));
  return results;
}

TEST(Workspaces, HoldTheLargestOfSixteenSizes) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= 16; ++size) sizes.push_back(8 * (7 * size % 17));  // in no order
  CompileOptions options;
  const auto apart = std::make_shared<CountingDevice>();
  const std::vector<Tensor> expected = run_sizes(apart, sizes, options);

  const auto together = std::make_shared<CountingDevice>();
  options.workspace = std::make_shared<Workspace>(together);
  int64_t largest = 0;
  const std::vector<Tensor> actual = run_sizes(together, sizes, options, &largest);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(actual[i].identical(expected[i])) << i;
  EXPECT_EQ(options.workspace->bytes(), largest);
  constexpr int64_t kWeightBytes = 64 * 64 * 4;
  EXPECT_EQ(together->peak_bytes(), largest + kWeightBytes);
  EXPECT_GT(*apart->peak_bytes(), 4 * *together->peak_bytes());
}

TEST(Workspaces, AreOfOneDevice) {
  CompileOptions options;
  options.workspace = std::make_shared<Workspace>(std::make_shared<CountingDevice>());
  EXPECT_ERROR(compile(*graph_of(8), std::make_shared<CountingDevice>(), options),
               ErrorCode::invalid_argument, "'g'", "another device");
}

// One that does not fit leaves the others what they need.
TEST(Workspaces, ServeOthersAfterTheyWereTooSmallForOne) {
  const auto device = std::make_shared<CountingDevice>();
  CompileOptions options;
  options.workspace = std::make_shared<Workspace>(device);
  const auto variables = std::make_shared<Variables>(device);
  variables->set("w", random_tensor(DataType::fp32, {64, 64}, -1, 1, 1));
  const auto small = compile(*graph_of(8), device, options);
  small->bind(variables);
  const Tensor expected = small->run({{"x", input_of(8)}}).at("d");
  device->set_limit(device->live_bytes() + 10'000);
  const auto large = compile(*graph_of(256), device, options);
  EXPECT_ERROR(large->bind(variables), ErrorCode::out_of_memory, "'g'", "limit");
  EXPECT_TRUE(small->run({{"x", input_of(8)}}).at("d").identical(expected));
}

}  // namespace
}  // namespace tessera::testing
