// Matrix products with what cuBLASLt's epilogues take: bias, activation, residual.
#include <algorithm>
#include <tuple>

#include "device_cuda/cuda_case.h"
#include "passes/run_pass.h"
#include "support/contraction_chains.h"
#include "support/every_kernel.h"
#include "support/tf32.h"

namespace tessera::testing {
namespace {

struct ProductType {
  std::string name;
  DataType type = DataType::fp32;
  bool tf32 = false;
};

// The product and all of the chain as one node; null where cuBLASLt has no epilogue for it.
std::unique_ptr<Graph> fused_graph(const ContractionText& product, const ContractionChain& chain,
                                   DataType type) {
  std::unique_ptr<Graph> graph = parse_graph(graph_text(product, chain, type));
  PassContext context;
  context.target = Device::open("cuda:plan-h100")->pass_target({});
  run_pass(*graph, "fuse_patterns", context);
  verify(*graph);
  return graph->nodes().size() == 1 ? std::move(graph) : nullptr;
}

std::vector<ContractionChain> epilogues() {
  std::vector<ContractionChain> result;
  for (const ContractionChain& chain : contraction_chains()) {
    if (fused_graph(matmul_texts().front(), chain, DataType::fp32) != nullptr) result.push_back(chain);
  }
  return result;
}

using FusedProduct = std::tuple<ContractionText, ContractionChain, ProductType>;

class FusedMatmul : public ::testing::TestWithParam<FusedProduct> {};

// Numbers of TF32, whose products are exact, so that what is added up is what the reference adds up.
TEST_P(FusedMatmul, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [product, chain, own] = GetParam();
  const std::unique_ptr<Graph> graph = fused_graph(product, chain, own.type);
  const Node& node = *graph->nodes().front();
  std::vector<Tensor> inputs = random_inputs(node, -1, 1);
  for (Tensor& input : inputs) input = rounded_to_tf32(input);
  expect_every_kernel(node, inputs, {chain_tolerance(product, own.type)},
                      std::vector<bool>(inputs.size(), false), gpu_or_null(), true, {}, own.tf32);
}

// Which kernels there are needs no GPU.
TEST_P(FusedMatmul, CudaIsCublasltsOrItsBodys) {
  const auto& [product, chain, own] = GetParam();
  const std::unique_ptr<Graph> graph = fused_graph(product, chain, own.type);
  ASSERT_NE(graph, nullptr);
  const Node& node = *graph->nodes().front();
  EXPECT_EQ(node.attributes().text("kind"), "matmul");
  const KernelRequest request{
      .node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false), .tf32 = own.tf32};
  const std::vector<KernelCandidate> candidates = Device::open("cuda:plan-h100")->candidates(node);
  EXPECT_EQ(candidates.front().name, "cublaslt.matmul");
  // One matrix for several of the batch is the body's.
  const std::string refusal =
      product.name == "BatchedMatmul" ? "[3, 16, 24] repeats some of its leading axes" : "";
  EXPECT_EQ(candidates.front().refusal(request), refusal);
  EXPECT_EQ(candidates.back().name, "expanded");
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, FusedMatmul,
                         ::testing::Combine(::testing::ValuesIn(matmul_texts()),
                                            ::testing::ValuesIn(epilogues()),
                                            ::testing::Values(ProductType{"fp32"},
                                                              ProductType{"tf32", DataType::fp32, true},
                                                              ProductType{"fp16", DataType::fp16},
                                                              ProductType{"bf16", DataType::bf16})),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name + "_" +
                                  std::get<2>(test.param).name;
                         });

TEST(FusedMatmuls, HaveTheEpiloguesOfCublaslt) {
  std::vector<std::string> names;
  for (const ContractionChain& chain : epilogues()) names.push_back(chain.name);
  EXPECT_EQ(names, (std::vector<std::string>{"bias", "bias_first", "bias_relu", "residual",
                                             "bias_residual_relu", "gelu_approximate"}));
}

}  // namespace
}  // namespace tessera::testing
