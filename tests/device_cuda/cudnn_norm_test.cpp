// Which norms cuDNN is asked for, and where it stands among the kernels; that its results are right is tested
// with all other candidates (batch_norm_test.cpp, operators_test.cpp).
#include <set>

#include "tessera/device/common/workspace_layout.h"

#include "device/cuda/cudnn/cudnn_norm_graph.h"
#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"
#include "support/operator_tolerance.h"

namespace tessera::testing {
namespace {

using cuda::NormKind;
using cuda::NormProblem;

struct Offer {
  std::string name;
  std::string refusal;
  bool only_tuned = false;
  bool operator==(const Offer&) const = default;
};

// The candidates of the first node of the graph, in their order.
std::vector<Offer> offers(const std::string& text) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  const Node& node = *graph->nodes().front();
  std::vector<Offer> result;
  for (const KernelCandidate& candidate : Device::open("cuda:plan-h200")->candidates(node)) {
    const KernelRequest request{.node = node,
                                .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
    result.push_back({candidate.name, candidate.refusal(request), candidate.only_tuned});
  }
  return result;
}

TEST(CudnnNorms, AreForTheTunerAloneButForTheGradientOfLayerNorm) {
  EXPECT_EQ(
      offers("graph g(input %x: fp16[8, 14, 14, 256], input %scale: fp32[256], input %bias: "
             "fp32[256]) {\n"
             "  %y, %mean, %variance = batch_norm_training(%x, %scale, %bias)\n"
             "  output y = %y\n  output mean = %mean\n  output variance = %variance\n}"),
      (std::vector<Offer>{
          {"resident.batch_norm", "", false}, {"cudnn.batch_norm", "", true}, {"expanded", "", false}}));
  EXPECT_EQ(
      offers("graph g(input %x: bf16[64, 512], input %scale: fp32[512], input %bias: fp32[512]) {\n"
             "  %y, %mean, %inverse = layer_norm(%x, %scale, %bias)\n  output y = %y\n}"),
      (std::vector<Offer>{
          {"generated.layer_norm", "", false}, {"cudnn.layer_norm", "", true}, {"expanded", "", false}}));
  EXPECT_EQ(offers("graph g(input %dy: fp16[64, 512], input %x: fp16[64, 512], input %scale: fp32[512], "
                   "input %mean: fp32[64], input %inverse: fp32[64]) {\n"
                   "  %dx, %dscale, %dbias = layer_norm_gradient(%dy, %x, %scale, %mean, %inverse)\n"
                   "  output dx = %dx\n}"),
            (std::vector<Offer>{{"cudnn.layer_norm_gradient", "", false},
                                {"generated.layer_norm_gradient", "", false},
                                {"expanded", "", false}}));
}

TEST(CudnnNorms, RefuseOtherTypes) {
  const std::vector<Offer> found = offers(
      "graph g(input %x: fp64[64, 512], input %scale: fp64[512], input %bias: fp64[512]) {\n"
      "  %y, %mean, %inverse = layer_norm(%x, %scale, %bias)\n  output y = %y\n}");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NE(found[0].refusal, "");
  EXPECT_NE(found[1].refusal, "");
  EXPECT_EQ(found[2].refusal, "");
}

TEST(CudnnNorms, TellAllProblemsApart) {
  std::vector<NormProblem> problems{{.x = {4, 8}}};
  const auto add = [&](const std::function<void(NormProblem&)>& change) {
    problems.push_back(problems.front());
    change(problems.back());
  };
  for (const auto flag : {&NormProblem::residual, &NormProblem::relu, &NormProblem::sum, &NormProblem::mask,
                          &NormProblem::deterministic})
    add([flag](auto& problem) { problem.*flag = !(problem.*flag); });
  for (const NormKind kind :
       {NormKind::batch_norm_gradient, NormKind::layer_norm, NormKind::layer_norm_gradient})
    add([kind](auto& problem) { problem.kind = kind; });
  add([](auto& problem) { problem.type = DataType::bf16; });
  add([](auto& problem) { problem.x = {4, 2, 4}; });
  add([](auto& problem) { problem.epsilon = 1e-5; });
  std::set<std::string> keys;
  for (const NormProblem& problem : problems) keys.insert(problem.key());
  EXPECT_EQ(keys.size(), problems.size());
}

// Of widths that are multiples of 32 a faster engine takes memory that is aligned to more than 64 bytes
// alone.
TEST(CudaLayerNorm, GradientTakesTheLeastAlignedMemory) {
  TESSERA_NEEDS_GPU();
  for (const char* type : {"fp32", "fp16", "bf16"}) {
    for (const int width : {32, 64, 512}) {
      const std::unique_ptr<Graph> graph = parse_graph(
          fmt::format("graph g(input %dy: {0}[21, {1}], input %x: {0}[21, {1}], input %scale: fp32[{1}], "
                      "input %mean: fp32[21], "
                      "input %inverse: fp32[21]) {{\n"
                      "  %dx, %dscale, %dbias = layer_norm_gradient(%dy, %x, %scale, %mean, %inverse)\n"
                      "  output dx = %dx\n  output dscale = %dscale\n  output dbias = %dbias\n}}",
                      type, width));
      const Node& node = *graph->nodes().front();
      const std::vector<Tensor> inputs = random_inputs(node, 0.5, 2);
      const std::vector<bool> frozen(inputs.size(), false);
      EXPECT_EQ(expect_every_kernel(node, inputs, tolerances_of(node, inputs), frozen, gpu_or_null()).front(),
                "cudnn.layer_norm_gradient");
    }
  }
}

TEST(CudaLayerNorm, PlansAreAlignedAsMemoryOfTheCardIs) {
  const std::unique_ptr<Graph> graph = parse_graph(
      "graph g(input %x: fp32[3]) {\n  %y = exp(%x)\n  %z = reduce_sum(%y) {axes = [0]}\n  output z = %z\n}");
  const std::shared_ptr<Device> card = Device::open("cuda:plan-h200");
  EXPECT_EQ(compile(*graph, card)->memory_plan().alignment, card->memory_alignment());
  EXPECT_EQ(backend::WorkspaceLayout::kAlignment % card->memory_alignment(), 0);
}

}  // namespace
}  // namespace tessera::testing
