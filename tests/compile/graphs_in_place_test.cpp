// Where the best candidate of a node is a graph of its own, its parts run in the node's place.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

using Graphs = std::map<std::string, std::shared_ptr<const Graph>>;  // by operator

// Of mish it knows a graph, of softplus inside it another one, and of the rest the reference's loops.
class ComposingDevice : public HostMemoryDevice {
 public:
  explicit ComposingDevice(Graphs graphs) : graphs_(std::move(graphs)) {}
  DeviceDescription description() const override { return {.name = "composing"}; }
  std::vector<KernelCandidate> candidates(const Node& node) const override {
    const auto own = graphs_.find(node.operator_name());
    if (own == graphs_.end()) return {reference_candidate()};
    KernelCandidate composed = reference_candidate();
    composed.name = "composed";
    composed.graph = [graph = own->second](const KernelRequest&) { return graph; };
    return {{.name = "none", .plan = [](const KernelRequest&) { return Refusal{"not today"}; }},
            composed,
            reference_candidate()};
  }

 private:
  Graphs graphs_;
};

struct Composed {
  std::shared_ptr<Executable> executable;
  std::map<std::string, Tensor> outputs;
  std::vector<std::string> nodes;  // by name and operator
};

CompileOptions without_passes() {
  CompileOptions options;
  options.poison_freed = true;
  options.pipeline.verify = true;
  for (const Pass& pass : pipeline({})) options.pipeline.disabled.insert(pass.name);
  return options;
}

Composed run_composed(const std::string& text, const Graphs& graphs,
                      const CompileOptions& options = without_passes()) {
  const auto device = std::make_shared<ComposingDevice>(graphs);
  Composed composed;
  composed.executable = compile(*parse_graph(text), device, options);
  composed.executable->bind(std::make_shared<Variables>(device));
  Tensor x(DataType::fp32, {4});
  for (int64_t i = 0; i < 4; ++i) x.set(i, 1.5 * static_cast<double>(i) - 2);
  composed.outputs = composed.executable->run({{"x", x}});
  for (const NodeReport& node : composed.executable->nodes())
    composed.nodes.push_back(node.name + ": " + node.operator_name);
  return composed;
}

const std::string kActivation =
    "graph g(input %x: fp32[4]) {\n  %h = exp(%x)\n  %y = mish(%h)\n  %z = negate(%y)\n  output y = %y\n  "
    "output "
    "z = %z\n}";
const Graphs kMish{{"mish", parse_graph(R"(graph mish(input %x: fp32[4]) {
  %soft = softplus(%x)
  %t = tanh(%soft)
  %y = multiply(%x, %t)
  output y = %y
})")}};

TEST(GraphsInPlace, ArePartsOfTheWhole) {
  const Composed composed = run_composed(kActivation, kMish);
  const Composed plain = run_composed(kActivation, {});
  EXPECT_EQ(composed.nodes, (std::vector<std::string>{"h: exp", "y/soft: softplus", "y/t: tanh",
                                                      "y: multiply", "z: negate"}));
  // The parts round to fp32 each, some units of numbers up to 12; a part left out is off by more than 0.1.
  for (const auto& [name, tensor] : plain.outputs) {
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(composed.outputs.at(name).at(i), tensor.at(i), 1e-5) << name;
  }
  ASSERT_EQ(composed.executable->replaced().size(), 1u);
  const NodeReport& replaced = composed.executable->replaced().front();
  EXPECT_EQ(replaced.name, "y");
  EXPECT_EQ(replaced.operator_name, "mish");
  EXPECT_EQ(replaced.kernel, "composed");
  EXPECT_EQ(replaced.candidates.front().refused, "not today");
  EXPECT_TRUE(plain.executable->replaced().empty());
}

TEST(GraphsInPlace, MayHoldOthers) {
  Graphs graphs = kMish;
  graphs["softplus"] = parse_graph(R"(graph softplus(input %x: fp32[4]) {
  %e = exp(%x)
  %one = constant() {value = fp32[] (1)}
  %more = add(%e, %one)
  %y = log(%more)
  output y = %y
})");
  const Composed composed = run_composed(kActivation, graphs);
  // What is constant comes first: it is made once.
  EXPECT_EQ(composed.nodes,
            (std::vector<std::string>{"y/soft/one: constant", "h: exp", "y/soft/e: exp", "y/soft/more: add",
                                      "y/soft: log", "y/t: tanh", "y: multiply", "z: negate"}));
  EXPECT_EQ(composed.executable->replaced().size(), 2u);
}

// One report for each round that found any.
TEST(GraphsInPlace, AreAPass) {
  Graphs graphs = kMish;
  graphs["softplus"] = parse_graph(R"(graph softplus(input %x: fp32[4]) {
  %e = exp(%x)
  %y = sqrt(%e)
  output y = %y
})");
  CompileOptions options = without_passes();
  std::vector<std::string> dumped;
  options.pipeline.dump = [&](const std::string& pass, const Graph& graph) {
    dumped.push_back(fmt::format("{} {}", pass, graph.nodes().size()));
  };
  const Composed composed = run_composed(kActivation, graphs, options);
  const std::vector<PassReport>& passes = composed.executable->passes();
  ASSERT_EQ(passes.size(), 2u);
  for (const PassReport& pass : passes) {
    EXPECT_EQ(pass.name, "expand_kernels");
    EXPECT_TRUE(pass.changed);
    EXPECT_GT(pass.time.microseconds(), 0);
  }
  EXPECT_EQ(passes[0].nodes_before, 3u);
  EXPECT_EQ(passes[0].nodes_after, 5u);
  EXPECT_EQ(passes[1].nodes_after, 6u);
  EXPECT_EQ(dumped, (std::vector<std::string>{"expand_kernels 5", "expand_kernels 6"}));
  EXPECT_TRUE(run_composed(kActivation, {}, options).executable->passes().empty());
}

TEST(GraphsInPlace, AreVerified) {
  const std::shared_ptr<Graph> graph = parse_graph(R"(graph mish(input %x: fp32[4]) {
  %soft = softplus(%x)
  %y = multiply(%x, %soft)
  output y = %y
})");
  graph->rename(graph->find("soft"), "no name");
  EXPECT_ERROR(run_composed(kActivation, {{"mish", graph}}), ErrorCode::invalid_graph,
               "after pass 'expand_kernels'", "'y/no name' is no legal name");
  CompileOptions options = without_passes();
  options.pipeline.verify = false;
  EXPECT_EQ(run_composed(kActivation, {{"mish", graph}}, options).nodes[1], "y/no name: softplus");
}

TEST(GraphsInPlace, AreKernelsWhereThePassIsDisabled) {
  CompileOptions options = without_passes();
  options.pipeline.disabled.insert("expand_kernels");
  const Composed composed = run_composed(kActivation, kMish, options);
  EXPECT_EQ(composed.nodes, (std::vector<std::string>{"h: exp", "y: mish", "z: negate"}));
  EXPECT_EQ(composed.executable->nodes()[1].kernel, "composed");
  EXPECT_TRUE(composed.executable->replaced().empty());
  EXPECT_TRUE(composed.executable->passes().empty());
}

// What a kernel copies is no value of the graph.
TEST(GraphsInPlace, AreKernelsWhereAnOutputIsAnInput) {
  const Composed composed = run_composed(
      kActivation, {{"mish", parse_graph("graph mish(input %x: fp32[4]) {\n  output y = %x\n}")}});
  EXPECT_EQ(composed.nodes, (std::vector<std::string>{"h: exp", "y: mish", "z: negate"}));
  EXPECT_EQ(composed.executable->nodes()[1].kernel, "composed");
  EXPECT_TRUE(composed.executable->replaced().empty());
}

}  // namespace
}  // namespace tessera::testing
