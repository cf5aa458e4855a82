// Blocks of pixels as channels: the kernels compile (no GPU needed), and move as the reference does (on a
// GPU).
#include "device_cuda/cuda_case.h"

namespace tessera::testing {
namespace {

// Stems of ResNet and AlexNet, and one whose blocks are no squares.
const std::vector<std::string> kTexts{
    R"(graph resnet(input %x: fp32[3, 16, 18, 3], input %w: fp32[8, 7, 7, 3], input %dy: fp32[3, 8, 9, 8]) {
  %y = convolution(%x, %w) {strides = [2, 2], padding_low = [3, 3], padding_high = [3, 3], dilations = [1, 1]}
  %dw = convolution_weight_gradient(%x, %dy) {weight_shape = [8, 7, 7, 3], strides = [2, 2], padding_low = [3, 3], padding_high = [3, 3], dilations = [1, 1]}
  output y = %y
  output dw = %dw
})",
    R"(graph alexnet(input %x: fp32[2, 32, 35, 3], input %w: fp32[8, 11, 11, 3], input %dy: fp32[2, 7, 8, 8]) {
  %y = convolution(%x, %w) {strides = [4, 4], padding_low = [2, 2], padding_high = [2, 2], dilations = [1, 1]}
  %dw = convolution_weight_gradient(%x, %dy) {weight_shape = [8, 11, 11, 3], strides = [4, 4], padding_low = [2, 2], padding_high = [2, 2], dilations = [1, 1]}
  output y = %y
  output dw = %dw
})",
    R"(graph oblong(input %x: fp32[2, 13, 19, 2], input %w: fp32[8, 5, 7, 2]) {
  %y = convolution(%x, %w) {strides = [2, 4], padding_low = [0, 3], padding_high = [1, 0], dilations = [1, 1]}
  output y = %y
})"};

TEST(CudaSpaceToDepth, KernelsCompile) {
  for (const std::string& text : kTexts) {
    const Case own = text_case(text);
    CompileOptions options;
    options.passes.precision = Precision::fp16;
    const auto executable = compile(*own.graph, Device::open("cuda:plan-h100"), options);
    cuda::Context card("h100");
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const auto& node : executable->graph().nodes()) {
      if (node->operator_name() != "fused") continue;
      const std::string& kind = node->attributes().text("kind");
      if (kind != "space_to_depth" && kind != "depth_to_space") continue;
      const KernelRequest request{.node = *node, .frozen_inputs = {false}};
      const KernelCandidate candidate = cuda::cuda_candidates(*node, card).front();
      ASSERT_EQ(candidate.refusal(request), "");
      kernels.push_back(candidate.create(request));
    }
    EXPECT_EQ(card.modules().sources().size(), own.graph->outputs().size() + 1) << own.name;
    for (const std::string& source : card.modules().sources()) {
      EXPECT_FALSE(cuda::machine_code(source, card.traits().architecture).empty()) << own.name;
    }
  }
}

TEST(CudaSpaceToDepth, RunsAsReference) {
  TESSERA_NEEDS_GPU();
  for (const std::string& text : kTexts) {
    for (const Precision precision : {Precision::fp16, Precision::bf16}) {
      const Case own = text_case(text);
      CompileOptions options;
      options.passes.precision = precision;
      options.poison_freed = true;
      const auto executable = compile(*own.graph, gpu_or_null(), options);
      executable->bind(std::make_shared<Variables>(gpu_or_null()));
      const std::map<std::string, Tensor> actual = executable->run(run_inputs(own));
      // Operands of the low type: what is left is one rounding of each sum.
      const DataType low = precision == Precision::fp16 ? DataType::fp16 : DataType::bf16;
      std::vector<Tensor> inputs;
      for (const Tensor& input : own.inputs) inputs.push_back(input.cast(low).cast(DataType::fp32));
      const ReferenceResult expected = run_reference(*own.graph, inputs);
      for (size_t i = 0; i < expected.outputs.size(); ++i) {
        const double roundoff = precision == Precision::fp16 ? 1.0 / 2048 : 1.0 / 256;
        expect_close(actual.at(own.graph->outputs()[i].name), expected.outputs[i], {1e-3, 2 * roundoff},
                     own.name);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::testing
