// Where the best candidate of a node is a graph of its own, its parts run in the node's place.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

namespace tessera::testing {
namespace {

// Of mish it knows a graph, of softplus inside it another one, and of the rest the reference's loops.
class ComposingDevice : public HostMemoryDevice {
 public:
  explicit ComposingDevice(std::map<std::string, std::string> graphs) : graphs_(std::move(graphs)) {}
  DeviceDescription description() const override { return {.name = "composing"}; }
  std::vector<KernelCandidate> candidates(const Node& node) const override {
    const auto own = graphs_.find(node.operator_name());
    if (own == graphs_.end()) return {reference_candidate()};
    KernelCandidate composed = reference_candidate();
    composed.name = "composed";
    composed.graph = [text = own->second](const KernelRequest&) {
      return std::shared_ptr<const Graph>(parse_graph(text));
    };
    return {{.name = "none", .plan = [](const KernelRequest&) { return Refusal{"not today"}; }},
            composed,
            reference_candidate()};
  }

 private:
  std::map<std::string, std::string> graphs_;
};

struct Composed {
  std::shared_ptr<Executable> executable;
  std::map<std::string, Tensor> outputs;
  std::vector<std::string> nodes;  // by name and operator
};

Composed run_composed(const std::string& text, const std::map<std::string, std::string>& graphs) {
  const auto device = std::make_shared<ComposingDevice>(graphs);
  Composed composed;
  CompileOptions options;
  options.poison_freed = true;
  for (const Pass& pass : pipeline({})) options.pipeline.disabled.insert(pass.name);
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
const std::map<std::string, std::string> kMish{{"mish",
                                                "graph mish(input %x: fp32[4]) {\n  %soft = softplus(%x)\n  "
                                                "%t = tanh(%soft)\n  %y = multiply(%x, %t)\n  "
                                                "output y = %y\n}"}};

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
  std::map<std::string, std::string> graphs = kMish;
  graphs["softplus"] =
      "graph softplus(input %x: fp32[4]) {\n  %e = exp(%x)\n  %one = constant() {value = fp32[] (1)}\n  "
      "%more = add(%e, %one)\n  %y = log(%more)\n  output y = %y\n}";
  const Composed composed = run_composed(kActivation, graphs);
  // What is constant comes first: it is made once.
  EXPECT_EQ(composed.nodes,
            (std::vector<std::string>{"y/soft/one: constant", "h: exp", "y/soft/e: exp", "y/soft/more: add",
                                      "y/soft: log", "y/t: tanh", "y: multiply", "z: negate"}));
  EXPECT_EQ(composed.executable->replaced().size(), 2u);
}

// What a kernel copies is no value of the graph.
TEST(GraphsInPlace, AreKernelsWhereAnOutputIsAnInput) {
  const Composed composed =
      run_composed(kActivation, {{"mish", "graph mish(input %x: fp32[4]) {\n  output y = %x\n}"}});
  EXPECT_EQ(composed.nodes, (std::vector<std::string>{"h: exp", "y: mish", "z: negate"}));
  EXPECT_EQ(composed.executable->nodes()[1].kernel, "composed");
  EXPECT_TRUE(composed.executable->replaced().empty());
}

}  // namespace
}  // namespace tessera::testing
