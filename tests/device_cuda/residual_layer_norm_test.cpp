// Layer norms over sums, and their gradients, in one kernel each.
#include <algorithm>
#include <tuple>

#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"
#include "support/operator_tolerance.h"
#include "support/residual_layer_norm_case.h"

namespace tessera::testing {
namespace {

using ResidualNormParameters = std::tuple<ResidualNormText, ResidualNormExtents>;

class CudaResidualLayerNorm : public ::testing::TestWithParam<ResidualNormParameters> {};

TEST_P(CudaResidualLayerNorm, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [text, own] = GetParam();
  const std::vector<std::string> names = expect_every_residual_norm(text, own, gpu_or_null());
  const bool is_generated = std::find(names.begin(), names.end(), "generated." + text.kind) != names.end();
  EXPECT_EQ(is_generated, own.type != DataType::fp64) << "fp64 is left to the body";
}

// Which kernels there are needs no GPU.
TEST_P(CudaResidualLayerNorm, IsOneKernelBesideItsBody) {
  const auto& [text, own] = GetParam();
  const FusedResidualNorm one = fused_residual_norm(text, own);
  const KernelRequest request{.node = *one.node,
                              .frozen_inputs = std::vector<bool>(one.inputs.size(), false)};
  std::vector<std::string> willing;
  for (const KernelCandidate& candidate : Device::open("cuda:plan-h100")->candidates(*one.node)) {
    if (candidate.refusal(request).empty()) willing.push_back(candidate.name);
  }
  std::vector<std::string> expected{"generated." + text.kind, "expanded"};
  if (own.type == DataType::fp64) expected.erase(expected.begin());
  EXPECT_EQ(willing, expected);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaResidualLayerNorm,
                         ::testing::Combine(::testing::ValuesIn(residual_norm_texts()),
                                            ::testing::ValuesIn(residual_norm_extents())),
                         [](const auto& test) {
                           return name_of(std::get<0>(test.param), std::get<1>(test.param));
                         });

// Rows of fewer elements than an access, of odd lengths and of whole accesses; for each number of threads and
// of accesses of a thread; a last group of rows that is not full; longer than a block takes.
class CudaLayerNormAlone : public ::testing::TestWithParam<NormAlone> {};

TEST_P(CudaLayerNormAlone, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  for (const std::string type : {"fp32", "fp16", "bf16", "fp64"}) {
    for (const auto& graph : {norm_alone(GetParam(), type), norm_gradient_alone(GetParam(), type)}) {
      const Node& node = *graph->nodes().front();
      const std::vector<Tensor> inputs = random_inputs(node, 0.5, 2);
      expect_every_kernel(node, inputs, tolerances_of(node, inputs), std::vector<bool>(inputs.size(), false),
                          gpu_or_null());
    }
  }
}

TEST_P(CudaLayerNormAlone, CudaCompiles) {
  for (const std::string type : {"fp32", "fp16", "bf16"}) {
    for (const auto& graph : {norm_alone(GetParam(), type), norm_gradient_alone(GetParam(), type)})
      EXPECT_GT(compile_candidates(*graph->nodes().front()), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaLayerNormAlone,
                         ::testing::Values(NormAlone{9, 3}, NormAlone{7, 33}, NormAlone{5, 768},
                                           NormAlone{2, 1003}, NormAlone{3, 8192}, NormAlone{2, 20000},
                                           NormAlone{9, 3, false}, NormAlone{7, 33, false},
                                           NormAlone{3, 1024, false}),
                         [](const auto& test) {
                           return fmt::format("{}_rows_of_{}{}", test.param.rows, test.param.channels,
                                              test.param.centered ? "" : "_by_root_mean_square");
                         });

// Rows of an activation are normalized by one launch where nothing was dropped before.
TEST(CudaLayerNormKernels, AreOneLaunch) {
  const std::unique_ptr<Graph> graph = norm_alone({64, 768}, "fp16");
  const std::unique_ptr<Executable> plan = compile(*graph, Device::open("cuda:plan-h100"));
  ASSERT_EQ(plan->nodes().size(), 1U);
  EXPECT_EQ(plan->nodes().front().kernel, "generated.layer_norm");
}

}  // namespace
}  // namespace tessera::testing
