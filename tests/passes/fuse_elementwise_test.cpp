// Text in, text out, and both through the reference interpreter.
#include <algorithm>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/pass.h"

#include "support/compare.h"

namespace tessera::testing {
namespace {

const Pass& find_pass(const std::vector<Pass>& passes, const std::string& name) {
  return *std::find_if(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
}

bool fuse(Graph& graph) {
  const PassContext context;
  const std::vector<Pass> passes = pipeline(context.options);
  const bool expanded = find_pass(passes, "expand_operators").run(graph, context);
  const bool changed = find_pass(passes, "fuse_elementwise").run(graph, context) || expanded;
  verify(graph);
  return changed;
}

std::vector<Tensor> inputs_of(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const auto& input : graph.inputs()) {
    Tensor tensor(input->data_type(), input->type().static_shape());
    const Random random(inputs.size() + 1);
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.set(i, 0.25 + random.uniform(static_cast<uint64_t>(i)));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// The graph after the pass, which means the same as before.
std::unique_ptr<Graph> fused(const std::string& text) {
  const std::unique_ptr<Graph> before = parse_graph(text);
  std::unique_ptr<Graph> after = before->clone();
  fuse(*after);
  const std::vector<Tensor> inputs = inputs_of(*before);
  const ReferenceResult expected = run_reference(*before, inputs);
  const ReferenceResult actual = run_reference(*after, inputs);
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    EXPECT_TRUE(actual.outputs[i].identical(expected.outputs[i])) << before->outputs()[i].name;
  }
  for (size_t i = 0; i < expected.updates.size(); ++i) {
    EXPECT_TRUE(actual.updates[i].identical(expected.updates[i])) << before->updates()[i].state->name();
  }
  return after;
}

void expect_text(const std::string& before, const std::string& after) {
  EXPECT_EQ(print(*fused(before)), print(*parse_graph(after)));
}

void expect_unchanged(const std::string& text) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  const std::string before = print(*graph);
  EXPECT_FALSE(fuse(*graph));
  EXPECT_EQ(print(*graph), before);
}

// How many nodes of each cluster's body there are, in order.
std::vector<size_t> cluster_sizes(const Graph& graph) {
  std::vector<size_t> sizes;
  for (const auto& node : graph.nodes()) {
    if (node->body() != nullptr) sizes.push_back(node->body()->nodes().size());
  }
  return sizes;
}

TEST(FuseElementwise, ChainWithBroadcastAndConstant) {
  expect_text(
      R"(graph g(input %x: fp32[4, 3], input %b: fp32[3]) {
        %half: fp32[] = constant() {value = fp32[] (0.5)}
        %s = add(%x, %b)
        %r = relu(%s)
        %y = multiply(%r, %half)
        output y = %y
      })",
      R"(graph g(input %x: fp32[4, 3], input %b: fp32[3]) {
        %y = fused(%x, %b) {kind = "cluster"} body graph cluster(input %x: fp32[4, 3], input %b: fp32[3]) {
          %half: fp32[] = constant() {value = fp32[] (0.5)}
          %s = add(%x, %b)
          %r = relu(%s)
          %y = multiply(%r, %half)
          output y0 = %y
        }
        output y = %y
      })");
}

TEST(FuseElementwise, SeveralOutputsAndOneReduction) {
  expect_text(
      R"(graph g(input %dy: fp32[4, 3], input %y: fp32[4, 3], input %zero: fp32[]) {
        %m = greater(%y, %zero)
        %dx = select(%m, %dy, %zero)
        %db = reduce_sum(%dx) {axes = [0]}
        output dx = %dx
        output db = %db
      })",
      R"(graph g(input %dy: fp32[4, 3], input %y: fp32[4, 3], input %zero: fp32[]) {
        %dx: fp32[4, 3], %db: fp32[3] = fused(%y, %zero, %dy) {kind = "cluster"}
            body graph cluster(input %y: fp32[4, 3], input %zero: fp32[], input %dy: fp32[4, 3]) {
          %m = greater(%y, %zero)
          %dx = select(%m, %dy, %zero)
          %db = reduce_sum(%dx) {axes = [0]}
          output y0 = %dx
          output y1 = %db
        }
        output dx = %dx
        output db = %db
      })");
}

TEST(FuseElementwise, CompositeBecomesPrimitives) {
  const std::unique_ptr<Graph> graph = fused("graph g(input %x: fp32[5]) { %y = gelu(%x) output y = %y }");
  ASSERT_EQ(graph->nodes().size(), 1u);
  const Node& cluster = *graph->nodes().front();
  EXPECT_EQ(cluster.name(), "y");
  for (const auto& node : cluster.body()->nodes()) EXPECT_FALSE(node->schema().decompose) << print(*node);
}

TEST(FuseElementwise, BroadcastIsNotMaterialized) {
  const std::unique_ptr<Graph> graph = fused(
      R"(graph g(input %x: fp32[4, 3], input %b: fp32[3]) {
        %wide = broadcast_to(%b) {shape = [4, 3]}
        %p = add(%x, %wide)
        %q = matmul(%x, %wide) {transpose_b = true}
        %r = exp(%q)
        %s = negate(%r)
        output p = %p
        output s = %s
      })");
  EXPECT_EQ(cluster_sizes(*graph), (std::vector<size_t>{2, 2}));
  EXPECT_NE(graph->find("wide"), nullptr) << "the matrix product still reads it";
}

// Both halves of the update in one kernel, also with a learning rate that another node makes.
TEST(FuseElementwise, OneClusterPerParameter) {
  const std::unique_ptr<Graph> graph = fused(
      R"(graph g(parameter %w: fp32[6], state %m: fp32[6], parameter %b: fp32[3], input %g: fp32[6],
                 input %gb: fp32[3], input %rate: fp32[], input %momentum: fp32[]) {
        %decay: fp32[] = constant() {value = fp32[] (0.01)}
        %two: fp32[] = constant() {value = fp32[] (2)}
        %fast = multiply(%rate, %two)
        %wd = multiply(%w, %decay)
        %full = add(%g, %wd)
        %mm = multiply(%m, %momentum)
        %m_new = add(%mm, %full)
        %step = multiply(%m_new, %fast)
        %w_new = subtract(%w, %step)
        %b_step = multiply(%gb, %fast)
        %b_new = subtract(%b, %b_step)
        update %w = %w_new
        update %m = %m_new
        update %b = %b_new
      })");
  EXPECT_EQ(cluster_sizes(*graph), (std::vector<size_t>{7, 2}));
}

// The mask is made where it is used, in the backward half, and not kept from the forward half.
TEST(FuseElementwise, NearestReaderFirst) {
  const std::unique_ptr<Graph> graph = fused(
      R"(graph g(input %x: fp32[4, 4], input %w: fp32[4, 4], input %zero: fp32[]) {
        %s = square(%x)
        %y = relu(%s)
        %p = matmul(%y, %w)
        %dp = matmul(%p, %w) {transpose_b = true}
        %m = greater(%y, %zero)
        %dy = select(%m, %dp, %zero)
        output dy = %dy
      })");
  ASSERT_EQ(cluster_sizes(*graph), (std::vector<size_t>{2, 2}));
  const Node& backward = *graph->find("dy")->producer();
  EXPECT_NE(backward.body()->find("m"), nullptr);
}

TEST(FuseElementwise, NotTwoReductions) {
  const std::unique_ptr<Graph> graph = fused(
      R"(graph g(input %x: fp32[4, 3]) {
        %y = exp(%x)
        %a = reduce_sum(%y) {axes = [0]}
        %b = reduce_max(%y) {axes = [1]}
        output a = %a
        output b = %b
      })");
  EXPECT_EQ(cluster_sizes(*graph), (std::vector<size_t>{2}));
}

TEST(FuseElementwise, NotOverDifferentShapes) {
  expect_unchanged(
      R"(graph g(input %x: fp32[4, 3], input %b: fp32[3]) {
        %c = exp(%b)
        %y = add(%x, %c)
        output y = %y
      })");
}

TEST(FuseElementwise, NotThroughANodeOutside) {
  expect_unchanged(
      R"(graph g(input %x: fp32[3, 3]) {
        %a = exp(%x)
        %p = matmul(%a, %a)
        %y = add(%a, %p)
        output y = %y
      })");
}

TEST(FuseElementwise, NotWithTheReaderOfItsReduction) {
  const std::unique_ptr<Graph> graph = fused(
      R"(graph g(input %x: fp32[4, 3]) {
        %e = exp(%x)
        %s = reduce_sum(%e) {axes = [1], keep_dimensions = true}
        %y = divide(%e, %s)
        output y = %y
      })");
  EXPECT_EQ(cluster_sizes(*graph), (std::vector<size_t>{2}));
  EXPECT_EQ(graph->find("y")->producer()->operator_name(), "divide");
}

// What a product made in 16 bits is read as such by both, and nobody stores it in 32.
TEST(FuseElementwise, EachClusterWidensByItself) {
  expect_text(R"(graph g(input %x: fp16[8, 4], input %gate: fp32[8, 1]) {
  %wide = cast(%x) {type = fp32}
  %mean = reduce_mean(%wide) {axes = [1], keep_dimensions = true}
  %scale = matmul(%mean, %gate) {transpose_a = true}
  %y = multiply(%wide, %scale)
  %narrow = cast(%y) {type = fp16}
  output y = %narrow
})",
              R"(graph g(input %x: fp16[8, 4], input %gate: fp32[8, 1]) {
  %mean: fp32[8, 1] = fused(%x) {kind = "cluster"} body graph cluster(input %x: fp16[8, 4]) {
    %wide: fp32[8, 4] = cast(%x) {type = fp32}
    %mean: fp32[8, 1] = reduce_mean(%wide) {axes = [1], keep_dimensions = true}
    output y0 = %mean
  }
  %scale: fp32[1, 1] = matmul(%mean, %gate) {transpose_a = true}
  %narrow: fp16[8, 4] = fused(%x, %scale) {kind = "cluster"} body graph cluster(
    input %x: fp16[8, 4],
    input %scale: fp32[1, 1]) {
    %wide_1: fp32[8, 4] = cast(%x) {type = fp32}
    %y: fp32[8, 4] = multiply(%wide_1, %scale)
    %narrow: fp16[8, 4] = cast(%y) {type = fp16}
    output y0 = %narrow
  }
  output y = %narrow
})");
}

TEST(FuseElementwise, NotASingleNode) {
  expect_unchanged("graph g(input %x: fp32[4]) { %y = exp(%x) output y = %y }");
}

// Joining two pairs must not close a circle that neither closes alone.
TEST(FuseElementwise, NotACircleOfClusters) {
  const std::unique_ptr<Graph> graph = fused(
      R"(graph g(input %x: fp32[3, 3], input %z: fp32[3, 3]) {
        %a = exp(%x)
        %b = exp(%z)
        %pa = matmul(%a, %x)
        %pb = matmul(%b, %x)
        %c = add(%a, %pb)
        %d = add(%b, %pa)
        output c = %c
        output d = %d
      })");
  EXPECT_LE(cluster_sizes(*graph).size(), 1u);
}

TEST(FuseElementwise, LeavesWorkOnNumbersAlone) {
  const auto graph = fused(R"(graph g(input %x: fp32[8, 1]) {
    %two = constant() {value = fp32[1] (2)}
    %three = constant() {value = fp32[1] (3)}
    %deviation = sqrt(%three)
    %factor = divide(%two, %deviation)
    %r = relu(%x)
    %y = multiply(%r, %factor)
    output y = %y
  })");
  for (const auto& node : graph->nodes())
    EXPECT_EQ(node->body() == nullptr, node->operator_name() != "fused") << print(*graph);
  EXPECT_TRUE(std::any_of(graph->nodes().begin(), graph->nodes().end(), [](const auto& node) {
    return node->body() != nullptr && !node->inputs().empty();
  })) << print(*graph);
}

// Windows that an exporter writes out, each a slice: as one cluster it had more operands than a kernel takes.
TEST(FuseElementwise, ChainsOfManyOperandsAreSeveralClusters) {
  constexpr int kOperands = 5000;
  std::string text = "graph g(";
  for (int i = 0; i < kOperands; ++i) text += fmt::format("{}input %x{}: fp32[3]", i == 0 ? "" : ", ", i);
  text += ") {\n  %m0 = relu(%x0)\n";
  for (int i = 1; i < kOperands; ++i) text += fmt::format("  %m{} = maximum(%m{}, %x{})\n", i, i - 1, i);
  text += fmt::format("  output y = %m{}\n}}", kOperands - 1);
  const auto graph = fused(text);
  EXPECT_LE(graph->nodes().size(), 25U);
  for (const auto& node : graph->nodes()) {
    ASSERT_EQ(node->operator_name(), "fused");
    EXPECT_LE(node->inputs().size(), 256U);
  }
}

}  // namespace
}  // namespace tessera::testing
