// Weight gradients of convolutions with windows in TF32.
#include "device_cuda/convolution_case.h"
#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

constexpr const char* kKernel = "generated.window_gradient";

ConvolutionCase same_size(const std::string& name, const std::string& pixels, int inputs, int outputs) {
  return {name,
          fmt::format("[{}, {}]", pixels, inputs),
          fmt::format("[{}, 3, 3, {}]", outputs, inputs),
          fmt::format("[{}, {}]", pixels, outputs),
          1,
          1,
          1};
}

// Rows of whole steps and broken ones, items of one row and of two, which cross images where the height is
// odd, several slices, and fewer items than a block should have.
std::vector<ConvolutionCase> cases() {
  return {
      same_size("OneRowItems", "6, 23, 40", 64, 64),     same_size("BrokenSteps", "2, 9, 51", 64, 64),
      same_size("ItemsOfTwoRows", "7, 14, 18", 64, 128), same_size("ItemsCrossImages", "6, 11, 28", 128, 64),
      same_size("OddRows", "3, 7, 17", 64, 64),          same_size("OneRow", "1, 1, 16", 128, 128),
      same_size("ManySlices", "5, 8, 20", 192, 256)};
}

class WindowGradient : public ::testing::TestWithParam<ConvolutionCase> {};

TEST_P(WindowGradient, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const std::unique_ptr<Graph> graph = gradient_of(GetParam(), "fp32");
  const Node& node = *graph->nodes().front();
  const TensorType& dy = node.input(1)->type();
  const int64_t terms = dy.element_count() / dy.static_shape().back();
  const Tolerance tolerance =
      tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = terms, .magnitude = 4});
  EXPECT_EQ(expect_every_kernel(node, exact_inputs(*graph), {tolerance}, {false, false}, gpu_or_null(), true,
                                kKernel, true),
            std::vector<std::string>{kKernel});
}

TEST_P(WindowGradient, CudaCompile) {
  EXPECT_GT(compile_candidates(*gradient_of(GetParam(), "fp32")->nodes().front(), true), 0U);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, WindowGradient, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST(WindowGradient, CudaRefusesOthersAndSaysWhy) {
  const auto refusal = [](const ConvolutionCase& own, const std::string& type = "fp32", bool tf32 = true,
                          const std::string& device = "cuda:plan-h100") {
    const std::unique_ptr<Graph> graph = gradient_of(own, type);
    const Node& node = *graph->nodes().front();
    for (const KernelCandidate& candidate : Device::open(device)->candidates(node)) {
      if (candidate.name == kKernel)
        return candidate.refusal({.node = node, .frozen_inputs = {false, false}, .tf32 = tf32});
    }
    return std::string("not offered");
  };
  const auto says = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const ConvolutionCase taken = cases().front();
  EXPECT_EQ(refusal(taken), "");
  says(refusal(taken, "fp32", false), "exact fp32");
  says(refusal(taken, "fp16"), "16 bits");
  says(refusal(taken, "fp32", true, "cuda:plan-a100"), "no warpgroups");
  says(refusal(same_size("", "2, 16, 16", 96, 64)), "96 and 64 channels");
  says(refusal(same_size("", "2, 14, 14", 64, 64)), "rows of 14 pixels");
  says(refusal(same_size("", "1, 2, 224", 64, 64)), "bytes of shared memory");
  says(refusal({"", "[2, 16, 16, 64]", "[64, 3, 3, 64]", "[2, 8, 8, 64]", 2, 1, 1}), "strides");
  says(refusal({"", "[2, 16, 16, 64]", "[64, 3, 3, 64]", "[2, 14, 14, 64]", 1, 0, 0}), "padding");
  says(refusal({"", "[2, 16, 16, 64]", "[64, 2, 2, 64]", "[2, 17, 17, 64]", 1, 1, 1}), "a window of 2 x 2");
}

}  // namespace
}  // namespace tessera::testing
