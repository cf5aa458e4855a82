// Work along one axis where rounding would show.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/ops/functions.h"

#include "device_cuda/cuda_case.h"
#include "support/every_kernel.h"
#include "support/operator_tolerance.h"

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

struct RowCase {
  std::string name;
  std::string type;
  int64_t rows = 0;
  int64_t extent = 0;
};

// Rows of fewer elements than an access, of whole accesses and of odd lengths, so that they begin anywhere;
// for each number of threads; longer than shared memory.
std::vector<RowCase> row_cases() {
  return {{"OneElement", "bf16", 9, 1},       {"LessThanAnAccess", "fp16", 9, 5},
          {"OneAccessAndOne", "bf16", 17, 9}, {"Whole", "fp32", 5, 1024},
          {"Odd", "fp32", 5, 1003},           {"OddOf16Bits", "bf16", 11, 2047},
          {"OfMoreThreads", "fp16", 9, 5003}, {"OfMostThreads", "bf16", 5, 50257},
          {"OfFp64", "fp64", 3, 3001},        {"LongerThanSharedMemory", "fp32", 3, 60001}};
}

class CudaRows : public ::testing::TestWithParam<RowCase> {
 protected:
  std::unique_ptr<Graph> make(const std::string& call) const {
    const RowCase& own = GetParam();
    const std::string sums = own.type == "fp64" ? "fp64" : "fp32";
    return parse_graph(fmt::format(
        "graph g(input %x: {0}[{2}, {3}], input %labels: int32[{2}], input %dy: {1}[{2}]) {{\n  %y = {4}\n"
        "  output y = %y\n}}",
        own.type, sums, own.rows, own.extent, call));
  }
  static std::vector<std::string> calls() {
    return {
        "softmax(%x)",
        "log_softmax(%x)",
        "cross_entropy(%x, %labels)",
        "cross_entropy(%x, %labels) {smoothing = 0.1}",
        "cross_entropy_gradient(%x, %labels, %dy)",
        "cross_entropy_gradient(%x, %labels, %dy) {smoothing = 0.1}",
        fmt::format("cross_entropy(%x, %labels) {{classes = {}, smoothing = 0.1}}", classes()),
        fmt::format("cross_entropy_gradient(%x, %labels, %dy) {{classes = {}, smoothing = 0.1}}", classes())};
  }
  // Where not all columns are. The softmax of one class does not depend on its logit.
  static int64_t classes() {
    const int64_t extent = GetParam().extent;
    return std::max(extent - 7, std::min<int64_t>(extent, 2));
  }
};

TEST_P(CudaRows, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  for (const std::string& call : calls()) {
    const std::unique_ptr<Graph> graph = make(call);
    const Node& node = *graph->nodes().front();
    std::vector<Tensor> inputs = random_inputs(node, -6, 6);
    // The last of every second row counts as much as all others, which no thread may leave out, and so does
    // the last that is a class.
    const int64_t extent = GetParam().extent;
    const double largest = 6 + std::log(extent);
    for (int64_t row = 0; row < GetParam().rows; row += 2) {
      inputs[0].set((row + 1) * extent - 1, largest);
      if (inputs.size() > 1)
        inputs[0].set(row * extent + ops::class_count(node.attributes(), extent) - 1, largest);
    }
    if (inputs.size() > 1)
      inputs[1] =
          random_tensor(DataType::int32, inputs[1].shape(), 0, static_cast<double>(classes()) - 0.5, 5);
    expect_every_kernel(node, inputs, tolerances_of(node, inputs), std::vector<bool>(inputs.size(), false),
                        gpu_or_null());
  }
}

TEST_P(CudaRows, CudaCompile) {
  for (const std::string& call : calls()) EXPECT_GT(compile_candidates(*make(call)->nodes().front()), 0U);
}

// A block keeps what it reads twice, where it fits. The loss reads rows once, but for smoothed ones, which
// it reads again from the cache.
TEST_P(CudaRows, CudaAreKeptInSharedMemory) {
  for (const std::string& call : calls()) {
    if (call.starts_with("cross_entropy(")) continue;
    cuda::Context card("h100");
    const std::unique_ptr<Graph> graph = make(call);
    const Node& node = *graph->nodes().front();
    const KernelRequest request{.node = node,
                                .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
    const std::unique_ptr<Kernel> kernel = cuda::cuda_candidates(node, card).front().create(request);
    const std::string source = card.modules().sources().front();
    const bool fits = GetParam().name != "LongerThanSharedMemory";
    const std::string before = call.starts_with("cross_entropy") ? ", " : ", 1, ";
    EXPECT_NE(source.find(before + (fits ? "true" : "false")), std::string::npos) << source;
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaRows, ::testing::ValuesIn(row_cases()),
                         [](const auto& test) { return test.param.name; });

// As in the reference elements of -inf count nothing, also where a thread has no others; a row of them, one
// with +inf and one with NaN have no softmax; a label that is ignored has no gradient.
TEST(CudaRowKernels, KnowRowsThatAreNotFinite) {
  TESSERA_NEEDS_GPU();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr int64_t kRows = 6;
  constexpr int64_t kExtent = 1003;
  Tensor x = Tensor::full(DataType::fp32, {kRows, kExtent}, -kInfinity);
  const auto set = [&](int64_t row, int64_t place, float value) { x.set(row * kExtent + place, value); };
  for (int64_t place = 0; place < kExtent; place += 500) set(0, place, 2);
  set(2, 3, 1);
  set(2, kExtent - 1, kInfinity);
  set(3, 3, 1);
  set(3, 700, std::numeric_limits<float>::quiet_NaN());
  set(4, 0, 1);
  set(5, 0, 1);
  const Tensor labels = Tensor::from<int32_t>({kRows}, {500, 1, 3, 3, -100, 2});
  const Tensor dy = Tensor::full(DataType::fp32, {kRows}, 1);
  for (const std::string call :
       {"softmax(%x)", "cross_entropy(%x, %l)", "cross_entropy_gradient(%x, %l, %dy)"}) {
    const auto graph = parse_graph(
        fmt::format("graph g(input %x: fp32[{0}, {1}], input %l: int32[{0}], input %dy: fp32[{0}]) {{\n"
                    "  %y = {2}\n  output y = %y\n}}",
                    kRows, kExtent, call));
    const Node& node = *graph->nodes().front();
    std::vector<Tensor> inputs{x, labels, dy};
    inputs.resize(node.inputs().size());
    const Tolerance tolerance{.absolute = 1e-6, .relative = 1e-6};
    expect_every_kernel(node, inputs, {tolerance}, std::vector<bool>(inputs.size(), false), gpu_or_null());
  }
}

}  // namespace
}  // namespace tessera::testing
