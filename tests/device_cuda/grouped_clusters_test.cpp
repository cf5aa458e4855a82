// Clusters of many shapes in one launch.
#include <set>

#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/expect_error.h"
#include "support/training_step.h"

namespace tessera::testing {
namespace {

// Updates and norms of tensors of several sizes: whole and broken steps, more than one block, a single
// number, sums of few and many blocks, a mean, and what two clusters read.
std::string text(const std::string& type) {
  std::string inputs = "input %rate: fp32[]";
  std::string nodes;
  const std::vector<std::string> shapes{"[]",        "[1]",       "[7]",        "[64]",
                                        "[3, 5, 8]", "[129, 65]", "[70, 1024]", "[64]"};
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs += fmt::format(", parameter %w{0}: fp32{1}, parameter %g{0}: {2}{1}", i, shapes[i], type);
    nodes += fmt::format(
        "  %l{0} = cast(%g{0}) {{type = fp32}}\n  %p{0} = multiply(%l{0}, %rate)\n  %n{0} = subtract(%w{0}, "
        "%p{0})\n"
        "  %h{0} = cast(%n{0}) {{type = {1}}}\n  %s{0} = square(%n{0})\n  %q{0} = {2}(%s{0})\n"
        "  output n{0} = %n{0}\n  output h{0} = %h{0}\n  output q{0} = %q{0}\n",
        i, type, i % 2 == 0 ? "reduce_sum" : "reduce_mean");
  }
  return "graph g(" + inputs + ") {\n" + nodes + "}";
}

std::unique_ptr<Graph> grouped(const std::string& type) {
  auto graph = parse_graph(text(type));
  PassContext context;
  context.target.reductions_per_cluster = 8;
  context.target.values_per_group = 1000;
  run_pass(*graph, "fuse_elementwise", context);
  EXPECT_TRUE(run_pass(*graph, "group_clusters", context));
  verify(*graph);
  return graph;
}

class GroupedClusters : public ::testing::TestWithParam<std::string> {};

TEST_P(GroupedClusters, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const std::unique_ptr<Graph> graph = grouped(GetParam());
  ASSERT_EQ(graph->nodes().size(), 1U) << print(*graph);
  const Node& node = *graph->nodes().front();
  const std::vector<Tensor> all = graph_inputs(*graph);
  std::vector<Tensor> inputs;
  for (const Value* input : node.inputs()) inputs.push_back(all.at(input->index()));
  Tolerances tolerances;
  for (const auto& output : node.outputs()) {
    const bool sum = output->name().starts_with("q");
    const int64_t terms = sum ? node.input(1)->type().element_count() : 1;
    tolerances.push_back(tolerance_for(sum ? OperatorClass::reduction : OperatorClass::elementwise,
                                       output->data_type(),
                                       {.terms = std::max<int64_t>(terms, 71'680), .magnitude = 16}));
  }
  const std::vector<std::string> names =
      expect_every_kernel(node, inputs, tolerances, std::vector<bool>(inputs.size(), false), gpu_or_null());
  EXPECT_NE(std::find(names.begin(), names.end(), "generated.clusters"), names.end());
}

TEST_P(GroupedClusters, CudaCompile) {
  const std::unique_ptr<Graph> graph = grouped(GetParam());
  ASSERT_EQ(graph->nodes().size(), 1U) << print(*graph);
  EXPECT_GT(compile_candidates(*graph->nodes().front()), 0U);
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, GroupedClusters, ::testing::Values("fp16", "bf16", "fp32"),
                         [](const auto& test) { return test.param; });

// The nodes that make the next values of all parameters.
std::set<const Node*> update_launches(const Executable& executable) {
  std::set<const Node*> launches;
  for (const auto& [state, next] : executable.graph().updates()) {
    if (state->role() == InputRole::parameter) launches.insert(next->producer());
  }
  return launches;
}

TEST(GroupedClustersPlan, CudaUpdatesAllWeightsInOneLaunch) {
  const models::Model model = models::create("resnet50");
  for (const optim::Optimizer& optimizer : {optim::sgd(), optim::adamw(), optim::lars(), optim::lamb()}) {
    for (const Precision precision : {Precision::fp16, Precision::fp32}) {
      // Of so few images that no convolution adds up its result, which leaves clusters of channels after it.
      const train::StepGraph step =
          training_step(model, {.batch = 8, .optimizer = optimizer, .precision = precision});
      const auto executable = planned(*step.graph, {.precision = precision});
      const std::set<const Node*> launches = update_launches(*executable);
      EXPECT_EQ(launches.size(), 1U) << optimizer.name;
      for (const Node* launch : launches) {
        EXPECT_EQ(launch->attributes().text("kind"), "clusters") << optimizer.name;
      }
      const size_t groups = count_of_kernel(*executable, "generated.clusters");
      EXPECT_GE(groups, 1U) << optimizer.name;
      EXPECT_LT(groups, 8U) << optimizer.name;
      EXPECT_LT(count_of_kernel(*executable, "generated.cluster"), 24U) << optimizer.name;
    }
  }
}

}  // namespace
}  // namespace tessera::testing
