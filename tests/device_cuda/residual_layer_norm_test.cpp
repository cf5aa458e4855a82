// Layer norms over sums, and their gradients, in one kernel each.
#include <algorithm>
#include <tuple>

#include "device_cuda/cuda_case.h"
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

}  // namespace
}  // namespace tessera::testing
