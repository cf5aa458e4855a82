#include <algorithm>
#include <limits>

#include "passes/run_pass.h"
#include "support/contraction_chains.h"
#include "support/every_kernel.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

class FusedContraction : public ::testing::TestWithParam<std::tuple<ContractionChain, DataType>> {
 protected:
  void check(const ContractionText& product) {
    const auto& [chain, type] = GetParam();
    const std::unique_ptr<Graph> graph = parse_graph(graph_text(product, chain, type));
    ASSERT_TRUE(run_pass(*graph, "fuse_patterns", brings({backend::contraction_pattern(product.kind)})));
    ASSERT_EQ(graph->nodes().size(), 1) << print(*graph);
    const Node& node = *graph->nodes().front();
    std::vector<bool> freezable;
    for (const Value* input : node.inputs()) freezable.push_back(input->role() == InputRole::parameter);
    const Tolerance tolerance = chain_tolerance(product, type);
    const std::vector<std::string> names =
        expect_every_kernel(node, random_inputs(node, -1, 1), {tolerance}, freezable);
    // Those of which oneDNN's own lose NaN.
    bool refused = chain.lines.find("relu6") != std::string::npos ||
                   chain.lines.find("clip") != std::string::npos ||
                   chain.lines.find("hard_sigmoid") != std::string::npos;
    // This one on processors with instructions for fp16, and after groups on those without AVX-512.
    const bool in_groups = product.main.find("groups") != std::string::npos;
    if (chain.name == "sigmoid" && (type == DataType::fp16 || in_groups))
      refused = names.front() == "unfused";
    EXPECT_EQ(names.front(), refused ? "unfused" : "onednn." + product.kind) << print(*graph);
    // Transformed filters, which the first of the kernels inside may be, spread NaN.
    if (refused && product.kind == "convolution") return;
    std::vector<Tensor> with_nan = random_inputs(node, -1, 1);
    with_nan[0].set(0, std::numeric_limits<double>::quiet_NaN());
    expect_every_kernel(node, with_nan, {tolerance}, freezable, Device::cpu(), true, names.front());
  }
};

TEST_P(FusedContraction, Convolution) {
  check({"Convolution", "convolution", "input %x: $T[2, 7, 6, 16], parameter %w: $T[24, 3, 3, 16]",
         "[2, 7, 6, 24]",
         "%v = convolution(%x, %w) {dilations = [1, 1], padding_high = [1, 1], padding_low = [1, 1], strides "
         "= [1, 1]}",
         9 * 16});
}

TEST_P(FusedContraction, PointwiseConvolution) {
  check({"PointwiseConvolution", "convolution", "input %x: $T[2, 7, 6, 16], parameter %w: $T[24, 1, 1, 16]",
         "[2, 7, 6, 24]",
         "%v = convolution(%x, %w) {dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides "
         "= [1, 1]}",
         16});
}

TEST_P(FusedContraction, GroupedConvolution) {
  check({"GroupedConvolution", "convolution", "input %x: $T[1, 9, 12], parameter %w: $T[24, 3, 4]",
         "[1, 9, 24]",
         "%v = convolution(%x, %w) {dilations = [1], groups = 3, padding_high = [1], padding_low = [1], "
         "strides = [1]}",
         12});
}

TEST_P(FusedContraction, Matmul) {
  for (const ContractionText& product : matmul_texts()) check(product);
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, FusedContraction,
                         ::testing::Combine(::testing::ValuesIn(contraction_chains()),
                                            ::testing::Values(DataType::fp32, DataType::bf16,
                                                              DataType::fp16)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

// A newer library may be right: tests/device_cpu/onednn_epilogue_faults_test.cpp tells.
TEST(FusedContractions, AreRefusedByTheNameOfTheLibraryThatIsWrong) {
  const auto refusal = [](const std::string& name, const std::string& last) {
    const std::unique_ptr<Graph> graph =
        parse_graph(with_window("graph g(input %x: fp32[1, 6, 6, 16], parameter %w: fp32[16, 1, 1, 16], "
                                "input %r: fp32[1, 6, 6, 16]) {\n"
                                "  %v = convolution(%x, %w) {$WINDOW}\n  %y = " +
                                last + "\n  output y = %y\n}"));
    EXPECT_TRUE(run_pass(*graph, "fuse_patterns", brings({backend::contraction_pattern("convolution")})));
    const Node& node = *graph->nodes().front();
    for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
      if (candidate.name == name)
        return candidate.refusal({node, std::vector<bool>(node.inputs().size(), false)});
    }
    return "there is no candidate " + name;
  };
  for (const char* activation : {"relu6(%v)", "clip(%v) {high = 1.0, low = 0.0}", "hard_sigmoid(%v)"})
    EXPECT_NE(refusal("onednn.convolution", activation).find("of oneDNN 3.2 makes"), std::string::npos)
        << activation;
  EXPECT_NE(refusal("onednn.convolution_blocked", "add(%v, %r)").find("oneDNN 3.2 reads"), std::string::npos);
  EXPECT_EQ(refusal("onednn.convolution", "relu(%v)"), "");
}

// The schema's examples: transposes, broadcasts of leading axes, thin matrices.
class Matmul : public ::testing::TestWithParam<DataType> {};

TEST_P(Matmul, Examples) {
  for (const OperatorExample& example : OperatorRegistry::instance().get("matmul").examples) {
    Graph graph;
    std::vector<Value*> values;
    for (const ExampleInput& input : example.inputs) {
      values.push_back(graph.add_input(InputRole::input, "x" + std::to_string(values.size()),
                                       {GetParam(), to_symbolic(input.shape)}));
    }
    const Node& node = *graph.add_node("matmul", values, example.attributes);
    const Tolerance tolerance = tolerance_for(OperatorClass::contraction, GetParam(), {.terms = 33});
    expect_every_kernel(node, random_inputs(node, -1, 1), {tolerance}, {false, true});
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCpu, Matmul, ::testing::Values(DataType::fp32, DataType::bf16, DataType::fp16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

// A body that no kernel of its kind knows still runs, node by node on the CPU's kernels.
TEST(Unfused, RunsAnyBody) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph g(input %x: fp32[4, 6], parameter %w: fp32[6, 5]) {
      %y, %z = fused(%x, %w) {kind = "nothing_knows_this"} body graph body(input %x: fp32[4, 6], input %w: fp32[6, 5]) {
        %m = matmul(%x, %w)
        %e = exp(%m)
        %s = multiply(%e, %m)
        output y0 = %s
        output y1 = %e
      }
      output y = %y
    })");
  const Node& node = *graph->nodes().front();
  // Sums of six products within 1 enter an exponential, whose slope is below e^4 there, and its product.
  Tolerance tolerance = tolerance_for(OperatorClass::contraction, DataType::fp32, {.terms = 6});
  tolerance.absolute *= std::exp(4.0);
  tolerance.relative += tolerance_for(OperatorClass::fused, DataType::fp32).relative;
  const std::vector<std::string> names =
      expect_every_kernel(node, random_inputs(node, -1, 1), {tolerance, tolerance}, {false, true});
  EXPECT_EQ(names, std::vector<std::string>{"unfused"});
}

}  // namespace
}  // namespace tessera::testing
