// Plain loops over windows: in which type they count, and what they sum of bytes.
#include "device_cuda/cuda_case.h"
#include "support/byte_convolutions.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

// The text that the kernel of this name has for the node.
std::string source_of(const Node& node, const std::string& kernel) {
  cuda::Context card("h100");
  for (const KernelCandidate& candidate : cuda::cuda_candidates(node, card)) {
    if (candidate.name != kernel) continue;
    const std::unique_ptr<Kernel> made =
        candidate.create({.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false)});
    const std::vector<std::string> sources = card.modules().sources();
    return sources.empty() ? "" : sources.front();
  }
  return "";
}

std::string index_of_convolution(const std::string& x, const std::string& weight, int stride = 1) {
  const std::unique_ptr<Graph> graph = parse_graph(fmt::format(
      "graph g(input %x: fp64{0}, input %weight: fp64{1}) {{\n  %y = convolution(%x, %weight) {{dilations = "
      "[1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [{2}, {2}]}}\n  output y = %y\n}}",
      x, weight, stride));
  const std::string source = source_of(*graph->nodes().front(), "generated.convolution");
  EXPECT_NE(source.find("using index = "), std::string::npos) << source;
  return source.find("using index = int64") != std::string::npos ? "int64" : "int32";
}

TEST(CudaWindowKernels, CountInWhatHoldsEveryOperand) {
  EXPECT_EQ(index_of_convolution("[1, 3, 3, 32]", "[64, 3, 3, 32]"), "int32");
  EXPECT_EQ(index_of_convolution("[64, 4096, 4096, 4]", "[4, 1, 1, 4]"), "int64");
  EXPECT_EQ(index_of_convolution("[1, 1, 1, 32768]", "[65536, 1, 1, 32768]"), "int64");  // the weight alone
  EXPECT_EQ(index_of_convolution("[1, 3, 3, 32]", "[64, 3, 3, 32]", 2147483647), "int64");
}

TEST(CudaByteConvolutions, ArePlainLoops) {
  const std::shared_ptr<Device> card = Device::open("cuda:plan-h100");
  for (const ByteConvolution& convolution : byte_convolutions()) {
    const Case own = case_of(convolution, /*extreme=*/false);
    EXPECT_EQ(compile(*own.graph, card)->nodes().back().kernel, "generated.convolution") << own.name;
    EXPECT_EQ(compile_candidates(*own.graph->nodes().back()), 1U) << own.name;
    EXPECT_EQ(compile_candidates(*own.graph->nodes().back(), false, "a100"), 1U) << own.name;
  }
}

TEST(CudaByteConvolutions, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  for (const ByteConvolution& convolution : byte_convolutions()) {
    for (const bool extreme : {false, true}) {
      const Case own = case_of(convolution, extreme);
      expect_every_kernel(*own.graph->nodes().back(), own.inputs, {Tolerance{}},
                          std::vector<bool>(own.inputs.size(), false), gpu_or_null());
    }
  }
}

}  // namespace
}  // namespace tessera::testing
