// Work along one axis where rounding would show.
#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"

namespace tessera::testing {
namespace {

// Logits that a diverging network makes are far from zero and close to each other: the loss is in their
// differences.
TEST(CudaRowKernels, FindTheLossOfLargeLogits) {
  TESSERA_NEEDS_GPU();
  for (const std::string smoothing : {"0.0", "0.1"}) {
    const std::unique_ptr<Graph> graph = parse_graph(
        fmt::format("graph g(input %x: fp32[3, 2], input %labels: int32[3]) {{\n"
                    "  %loss = cross_entropy(%x, %labels) {{smoothing = {}}}\n  output loss = %loss\n}}\n",
                    smoothing));
    const Node& node = *graph->nodes().front();
    const std::vector<Tensor> inputs{Tensor::from<float>({3, 2}, {1e4F, 1e4F, 1e6F, 1e6F, 1e6F, 1e6F + 1}),
                                     Tensor::from<int32_t>({3}, {0, 1, 0})};
    const Tolerance tolerance = tolerance_for(OperatorClass::loss, DataType::fp32, {.terms = 2});
    expect_every_kernel(node, inputs, {tolerance}, {false, false}, gpu_or_null());
  }
}

}  // namespace
}  // namespace tessera::testing
