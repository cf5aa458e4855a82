#include "tessera/compile/executable.h"

#include "support/batch_norm_case.h"

namespace tessera::testing {
namespace {

// Few and many channels, whole and broken vectors, one and many blocks of rows, one and several threads.
std::vector<Extents> extents() {
  std::vector<Extents> result;
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    for (const Shape& x : {Shape{4, 3, 5, 7}, Shape{2, 16, 16, 64}, Shape{13, 33}, Shape{3, 70, 19},
                           Shape{1, 1, 1, 5}, Shape{2, 3, 4, 5, 16}, Shape{1, 2048}}) {
      result.push_back({x, type});
    }
  }
  return result;
}

class BatchNorm : public ::testing::TestWithParam<std::tuple<BatchNormText, Extents>> {};

TEST_P(BatchNorm, EveryKernel) {
  const auto& [text, own] = GetParam();
  const BatchNormCase batch_norm = batch_norm_case(text, own);
  expect_every_kernel(*batch_norm.node, batch_norm.inputs, batch_norm.tolerances,
                      std::vector<bool>(batch_norm.inputs.size(), false));
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, BatchNorm,
                         ::testing::Combine(::testing::ValuesIn(batch_norm_texts()),
                                            ::testing::ValuesIn(extents())),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + name_of(std::get<1>(test.param));
                         });

class BatchNormExtents : public ::testing::TestWithParam<Extents> {};

// What recompute_activations makes: the bits of the training kernel, in one pass over memory.
TEST_P(BatchNormExtents, RecomputedGivesTheBitsOfTraining) {
  const std::unique_ptr<Graph> graph =
      batch_norm_graph(R"(graph g(input %x: $X, input %scale: $C, input %bias: $C) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %y = relu(%n)
    %again = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
    %copy = relu(%again)
    output y = %y
    output copy = %copy
  })",
                       GetParam());
  const auto executable = compile(*graph, Device::cpu());
  executable->bind(std::make_shared<Variables>(Device::cpu()));
  ASSERT_EQ(executable->nodes().size(), 2u);
  EXPECT_EQ(executable->nodes()[1].kernel, "loops.batch_norm_inference");
  const std::vector<Tensor> values = graph_inputs(*graph);
  const auto outputs = executable->run({{"x", values[0]}, {"scale", values[1]}, {"bias", values[2]}});
  EXPECT_TRUE(outputs.at("copy").identical(outputs.at("y")));
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, BatchNormExtents, ::testing::ValuesIn(extents()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace tessera::testing
