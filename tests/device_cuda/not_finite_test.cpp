// What is not finite stays so through every kernel that ends in a relu: a network that has diverged must not
// look as if it had not.
#include <cmath>
#include <limits>

#include "device_cuda/cuda_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

struct ReluCase {
  std::string name;
  std::string kind;  // of the node that it makes
  std::string text;
  bool tf32 = false;
};

std::string convolution_text(const std::string& type, const std::string& x, const std::string& weight,
                             const std::string& y, int window, bool residual) {
  const std::string channels = weight.substr(1, weight.find(',') - 1);
  return fmt::format(
      "graph g(input %x: {0}{1}, input %weight: {0}{2}, input %bias: {0}[{3}], input %residual: {0}{4}) {{\n"
      "  %c = convolution(%x, %weight) {{dilations = [1, 1], padding_high = [{5}, {5}], padding_low = [{5}, "
      "{5}], strides = [1, 1]}}\n  %b = add(%c, %bias)\n{6}  %y = relu(%{7})\n  output y = %y\n}}\n",
      type, x, weight, channels, y, window / 2, residual ? "  %s = add(%b, %residual)\n" : "",
      residual ? "s" : "b");
}

std::vector<ReluCase> cases() {
  std::vector<ReluCase> result;
  for (const std::string type : {"fp32", "fp16", "bf16"}) {
    for (const bool tf32 : {false, true}) {
      if (tf32 && type != "fp32") continue;
      const std::string name = tf32 ? "tf32" : type;
      const auto add = [&](const std::string& own, const std::string& kind, const std::string& text) {
        result.push_back({own + "_" + name, kind, text, tf32});
      };
      add("Convolution", "convolution",
          convolution_text(type, "[2, 9, 9, 32]", "[64, 3, 3, 32]", "[2, 9, 9, 64]", 3, false));
      add("PointwiseConvolution", "convolution",
          convolution_text(type, "[2, 9, 9, 64]", "[64, 1, 1, 64]", "[2, 9, 9, 64]", 1, false));
      add("ConvolutionWithResidual", "convolution",
          convolution_text(type, "[2, 9, 9, 64]", "[256, 1, 1, 64]", "[2, 9, 9, 256]", 1, true));
      add("ResidualOfManyPixels", "convolution",
          convolution_text(type, "[21, 57, 59, 64]", "[256, 1, 1, 64]", "[21, 57, 59, 256]", 1, true));
      add("FewChannels", "convolution",
          convolution_text(type, "[2, 16, 16, 4]", "[64, 3, 3, 4]", "[2, 16, 16, 64]", 3, false));
      add("Matmul", "matmul",
          fmt::format("graph g(input %x: {0}[48, 64], input %weight: {0}[64, 32], input %bias: {0}[32]) {{\n"
                      "  %c = matmul(%x, %weight)\n  %b = add(%c, %bias)\n  %y = relu(%b)\n"
                      "  output y = %y\n}}\n",
                      type));
      add("BatchNorm", "batch_norm",
          fmt::format("graph g(input %x: {0}[4, 7, 7, 64], input %scale: fp32[64], input %bias: fp32[64]) "
                      "{{\n  %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)\n"
                      "  %y = relu(%n)\n  output y = %y\n  output mean = %mean\n  output variance = "
                      "%variance\n}}\n",
                      type));
    }
  }
  return result;
}

class CudaRelu : public ::testing::TestWithParam<ReluCase> {};

TEST_P(CudaRelu, EveryKernelKeepsWhatIsNotFinite) {
  TESSERA_NEEDS_GPU();
  const ReluCase& own = GetParam();
  const std::unique_ptr<Graph> graph = parse_graph(own.text);
  const FusionPattern pattern =
      own.kind == "batch_norm" ? backend::batch_norm_pattern() : backend::contraction_pattern(own.kind);
  ASSERT_TRUE(run_pass(*graph, "fuse_patterns", brings({pattern})));
  const Node& node = *graph->nodes().back();
  ASSERT_EQ(node.attributes().text("kind"), own.kind);
  std::vector<Tensor> inputs;
  const std::vector<Tensor> all = graph_inputs(*graph);
  for (const Value* input : node.inputs()) {
    inputs.push_back(all.at(input->index()));
    if (input->name() != "x") continue;
    inputs.back().set(5, std::numeric_limits<double>::quiet_NaN());
    inputs.back().set(inputs.back().size() - 3, std::numeric_limits<double>::infinity());
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  const std::vector<Tensor> expected = run_reference(node, pointers);
  const KernelRequest request{
      .node = node, .frozen_inputs = std::vector<bool>(inputs.size(), false), .tf32 = own.tf32};
  for (const KernelCandidate& candidate : gpu_or_null()->candidates(node)) {
    if (!candidate.refusal(request).empty()) continue;
    const std::unique_ptr<Kernel> kernel = candidate.create(request);
    const std::vector<Tensor> actual = run_kernel(*gpu_or_null(), *kernel, request, inputs);
    for (size_t output = 0; output < expected.size(); ++output) {
      int64_t lost = 0, numbers = 0;
      for (int64_t i = 0; i < expected[output].size(); ++i) {
        const double value = expected[output].at(i);
        if (std::isfinite(value)) continue;
        ++numbers;
        lost += std::isfinite(actual[output].at(i)) ? 1 : 0;
      }
      EXPECT_GT(numbers, 0) << "nothing was spoiled";
      EXPECT_EQ(lost, 0) << candidate.name << ", output " << output << ", of " << numbers;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaRelu, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera::testing
