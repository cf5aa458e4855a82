// Batch normalization in one resident kernel and in two passes.
#include "device/cuda/normalization/resident_plan.h"
#include "device_cuda/cuda_case.h"
#include "support/batch_norm_case.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

// One lane and sixteen, fewer rows than blocks, broken last steps, one team and many, channels that no access
// of 16 bytes fits, and (the last) more rows than the multiprocessors hold.
std::vector<Extents> extents() {
  std::vector<Extents> result;
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    for (const Shape& x : {Shape{2, 16, 16, 64}, Shape{13, 33}, Shape{3, 70, 24}, Shape{1, 1, 1, 8},
                           Shape{8, 7, 7, 512}, Shape{1, 2048}, Shape{5, 14, 14, 1024}}) {
      result.push_back({x, type});
    }
  }
  result.push_back({{33, 56, 56, 64}, DataType::fp32});
  return result;
}

class CudaBatchNorm : public ::testing::TestWithParam<std::tuple<BatchNormText, Extents>> {};

TEST_P(CudaBatchNorm, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [text, own] = GetParam();
  const BatchNormCase batch_norm = batch_norm_case(text, own, true);
  expect_every_kernel(*batch_norm.node, batch_norm.inputs, batch_norm.tolerances,
                      std::vector<bool>(batch_norm.inputs.size(), false), gpu_or_null());
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaBatchNorm,
                         ::testing::Combine(::testing::ValuesIn(batch_norm_texts()),
                                            ::testing::ValuesIn(extents())),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + name_of(std::get<1>(test.param));
                         });

// A normalization with relu, and what recompute_activations makes of it.
std::unique_ptr<Graph> recomputing_graph(const Extents& own) {
  return batch_norm_graph(R"(graph g(input %x: $X, input %scale: $C, input %bias: $C) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias) {epsilon = 0.01}
    %y = relu(%n)
    %again = batch_norm_inference(%x, %scale, %bias, %mean, %variance) {epsilon = 0.01}
    %copy = relu(%again)
    output y = %y
    output copy = %copy
  })",
                          own);
}

class CudaBatchNormExtents : public ::testing::TestWithParam<Extents> {};

TEST_P(CudaBatchNormExtents, RecomputedGivesTheBitsOfTraining) {
  TESSERA_NEEDS_GPU();
  const std::unique_ptr<Graph> graph = recomputing_graph(GetParam());
  const auto executable = compile(*graph, gpu_or_null());
  executable->bind(std::make_shared<Variables>(gpu_or_null()));
  const std::vector<Tensor> values = graph_inputs(*graph);
  const auto outputs = executable->run({{"x", values[0]}, {"scale", values[1]}, {"bias", values[2]}});
  EXPECT_TRUE(outputs.at("copy").identical(outputs.at("y")));
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaBatchNormExtents, ::testing::ValuesIn(extents()),
                         [](const auto& test) { return name_of(test.param); });

TEST(CudaBatchNormKernels, RecomputeByTheExpressionOfTraining) {
  cuda::Context card("h100");
  const std::unique_ptr<Graph> graph = recomputing_graph({{8, 14, 14, 64}, DataType::fp16});
  run_pipeline(*graph, pipeline({}), {{}, Device::open("cuda:plan-h100")->pass_target({})}, {});
  ASSERT_EQ(graph->nodes().size(), 2U);
  const Node& copy = *graph->nodes().back();
  const KernelRequest request{.node = copy, .frozen_inputs = std::vector<bool>(copy.inputs().size(), false)};
  const auto candidates = cuda::cuda_candidates(copy, card);
  ASSERT_EQ(candidates.size(), 1U);
  const std::unique_ptr<Kernel> kernel = candidates.front().create(request);
  std::string source;
  for (const std::string& part : card.modules().sources()) source += part;
  EXPECT_NE(source.find("op_rsqrt"), std::string::npos) << source;
  EXPECT_EQ(source.find("op_divide"), std::string::npos) << source;
}

// What is added to itself is one parameter of the kernel, that reads it twice.
TEST(CudaBatchNormKernels, TakeOneTensorInTwoPlaces) {
  const std::vector<BatchNormText> texts{
      {"Twice", "batch_norm_gradient",
       R"(graph g(input %dy: $X, input %x: $X, input %scale: $C, input %mean: $C, input %variance: $C) {
    %sum = add(%dy, %dy)
    %dx, %dscale, %dbias = batch_norm_gradient(%sum, %x, %scale, %mean, %variance)
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })"},
      {"OfItself", "",
       R"(graph g(input %x: $X, input %scale: $C, input %mean: $C, input %variance: $C) {
    %dx, %dscale, %dbias = batch_norm_gradient(%x, %x, %scale, %mean, %variance)
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })"},
      {"WithItself", "batch_norm", R"(graph g(input %x: $X, input %scale: $C) {
    %n, %mean, %variance = batch_norm_training(%x, %scale, %scale)
    %sum = add(%n, %x)
    %y = relu(%sum)
    output y = %y
  })"}};
  for (const BatchNormText& text : texts) {
    const BatchNormCase batch_norm = batch_norm_case(text, {{8, 7, 7, 512}, DataType::fp16}, true);
    EXPECT_GT(compile_candidates(*batch_norm.node), 1U) << text.name;
    if (gpu_or_null() == nullptr) continue;
    expect_every_kernel(*batch_norm.node, batch_norm.inputs, batch_norm.tolerances,
                        std::vector<bool>(batch_norm.inputs.size(), false), gpu_or_null());
  }
}

TEST(CudaBatchNormKernels, Compile) {
  for (const BatchNormText& text : batch_norm_texts()) {
    const BatchNormCase batch_norm = batch_norm_case(text, {{8, 7, 7, 512}, DataType::fp16});
    EXPECT_GT(compile_candidates(*batch_norm.node), 0U) << text.name;
  }
}

cuda::GpuTraits h100() {
  return cuda::Context("h100").traits();
}

TEST(ResidentPlan, HoldsWhatFits) {
  // 14 x 14, 256 images: four slices of 64 channels fit, one for each team.
  const cuda::ResidentPlan plan =
      cuda::resident_plan({.type = DataType::fp16, .rows = 50176, .channels = 256}, h100());
  EXPECT_EQ(plan.lanes, 8);
  EXPECT_EQ(plan.teams, 4);
  EXPECT_EQ(plan.blocks(), 264);
  EXPECT_GT(plan.held_share, 1);
}

TEST(ResidentPlan, ReadsWiderPiecesWhereNothingFits) {
  const cuda::ResidentPlan plan = cuda::resident_plan(
      {.type = DataType::fp16, .rows = 802816, .channels = 256, .kept = 2, .passing = 2}, h100());
  EXPECT_EQ(plan.lanes, 16);
  EXPECT_EQ(plan.teams, 2);
  EXPECT_LT(plan.held_share, 0.1);
}

TEST(ResidentPlan, StaysWithinSharedMemoryOnEveryCard) {
  for (const char* card : {"a100", "h100", "b200"}) {
    const cuda::GpuTraits gpu = cuda::Context(card).traits();
    for (const DataType type : {DataType::fp16, DataType::fp32}) {
      for (const int64_t channels : {8, 24, 64, 2048}) {
        for (const int passing : {0, 1, 2}) {
          const cuda::ResidentProblem problem{.type = type,
                                              .rows = 100'003,
                                              .channels = channels,
                                              .kept = passing > 0 ? 2 : 1,
                                              .passing = passing};
          const cuda::ResidentPlan plan = cuda::resident_plan(problem, gpu);
          EXPECT_LE(cuda::kResidentBlocks * cuda::resident_shared_bytes(problem, plan), gpu.shared_bytes);
          EXPECT_LE(plan.blocks(), gpu.multiprocessors * cuda::kResidentBlocks);
          EXPECT_GE(plan.slots, plan.ahead);
          EXPECT_GE(plan.ahead, 1);
        }
      }
    }
  }
}

TEST(ResidentPlan, RefusesChannelsThatAreNoWholeAccess) {
  EXPECT_ERROR(cuda::resident_plan({.type = DataType::fp16, .rows = 10, .channels = 12}, h100()),
               ErrorCode::unsupported, "12 channels", "8");
}

}  // namespace
}  // namespace tessera::testing
