#include <cmath>
#include <limits>

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

const char* const kPass = "recognize_attention";

// Two heads of three queries, five keys, eight numbers of each and six of a value.
std::string graph_of(const std::string& lines) {
  return "graph g(input %q: fp32[2, 2, 3, 8], input %k: fp32[2, 2, 5, 8], input %v: fp32[2, 2, 5, 6], "
         "input %b: fp32[2, 1, 1, 5], input %wide: fp32[2, 2, 3, 5], input %m: bool[3, 5]) {\n"
         "  %t = transpose(%k) {permutation = [0, 1, 3, 2]}\n"
         "  %root = constant() {value = fp32[] (2.828427)} %fifth = constant() {value = fp32[1] (0.2)}\n"
         "  %least = constant() {value = fp32[] (-3e38)} %few = constant() {value = fp32[] (-10)} %much = "
         "constant() {value = fp32[] (-10000)}\n" +
         lines + "\n  output y = %y\n}";
}

const Node* attention_in(const Graph& graph) {
  const Node* found = nullptr;
  for (const auto& node : graph.nodes()) {
    if (node->operator_name() == "attention") found = node.get();
  }
  return found;
}

// With this scale; with a bias or without.
void expect_recognized(const std::string& lines, double scale, bool has_bias) {
  const std::unique_ptr<Graph> before = parse_graph(graph_of(lines));
  const std::unique_ptr<Graph> after = parse_graph(graph_of(lines));
  EXPECT_TRUE(run_pass(*after, kPass)) << lines;
  verify(*after);
  run_pass(*after, "remove_dead_code");
  const Node* attention = attention_in(*after);
  ASSERT_NE(attention, nullptr) << print(*after);
  EXPECT_EQ(attention->inputs().size(), has_bias ? 4U : 3U);
  EXPECT_NEAR(attention->attributes().real("scale"), scale, 1e-6) << lines;
  for (const auto& node : after->nodes()) EXPECT_NE(node->operator_name(), "softmax") << print(*after);
  // The same sums in another order, of exponentials of numbers that differ by a rounding.
  expect_same_results(*before, *after, kReordered);
}

TEST(RecognizeAttention, WithoutABias) {
  expect_recognized("%s = matmul(%q, %t) %p = softmax(%s) {axis = 3} %y = matmul(%p, %v)", 1, false);
  expect_recognized(
      "%s = matmul(%q, %k) {transpose_b = true} %p = softmax(%s) {axis = -1} %y = matmul(%p, %v)", 1, false);
}

TEST(RecognizeAttention, WithAScaleAnywhere) {
  const std::string rest = " %p = softmax(%z) {axis = 3} %y = matmul(%p, %v)";
  expect_recognized("%s = matmul(%q, %t) %z = divide(%s, %root)" + rest, 1 / 2.828427, false);
  expect_recognized("%s = matmul(%q, %t) %z = multiply(%fifth, %s)" + rest, 0.2, false);
  expect_recognized("%a = multiply(%q, %fifth) %c = multiply(%t, %fifth) %z = matmul(%a, %c)" + rest, 0.04,
                    false);
  expect_recognized(
      "%c = multiply(%k, %root) %d = transpose(%c) {permutation = [0, 1, 3, 2]} %z = matmul(%q, %d)" + rest,
      2.828427, false);
}

TEST(RecognizeAttention, KeysThatAreMovedStraightToTheirPlace) {
  const std::string graph =
      "graph g(input %q: fp32[2, 2, 3, 8], input %k: fp32[2, 5, 2, 8], input %v: fp32[2, 2, 5, 6]) {\n"
      "  %t = transpose(%k) {permutation = [0, 2, 3, 1]} %s = matmul(%q, %t)\n"
      "  %p = softmax(%s) {axis = 3} %y = matmul(%p, %v)\n  output y = %y\n}";
  const std::unique_ptr<Graph> after = parse_graph(graph);
  EXPECT_TRUE(run_pass(*after, kPass));
  run_pass(*after, "remove_dead_code");
  ASSERT_EQ(after->nodes().size(), 2U) << print(*after);
  EXPECT_EQ(after->nodes().front()->attributes().integers("permutation"), (std::vector<int64_t>{0, 2, 1, 3}));
  expect_same_results(*parse_graph(graph), *after, kReordered);
}

// As exporters write keys that several heads of queries share.
TEST(RecognizeAttention, HeadsThatAreRepeated) {
  const auto graph_with = [](const std::string& order) {
    const auto repeated = [&](const std::string& x) {
      return "  %" + x + "1 = reshape(%" + x + ") {shape = [2, 2, 1, 5, 8]}\n  %" + x + "2 = broadcast_to(%" +
             x + "1) {shape = [2, 2, 3, 5, 8]}\n";
    };
    return "graph g(input %q: fp32[2, 6, 3, 8], input %k: fp32[2, 2, 5, 8], input %v: fp32[2, 2, 5, 8]) {\n" +
           repeated("k") + repeated("v") + order +
           "  %kr = reshape(%k3) {shape = [2, 6, 5, 8]}\n  %vr = reshape(%v2) {shape = [2, 6, 5, 8]}\n"
           "  %t = transpose(%kr) {permutation = [0, 1, 3, 2]} %s = matmul(%q, %t)\n"
           "  %p = softmax(%s) {axis = 3} %y = matmul(%p, %vr)\n  output y = %y\n}";
  };
  for (const bool is_in_order : {true, false}) {
    // The heads one after the other, each once, and again.
    const std::string graph =
        graph_with(is_in_order ? "  %k3 = reshape(%k2) {shape = [2, 2, 3, 5, 8]}\n"
                               : "  %k3 = transpose(%k2) {permutation = [0, 2, 1, 3, 4]}\n");
    const std::unique_ptr<Graph> after = parse_graph(graph);
    run_pass(*after, "simplify_algebra");
    EXPECT_TRUE(run_pass(*after, kPass));
    verify(*after);
    run_pass(*after, "remove_dead_code");
    const Node* attention = attention_in(*after);
    ASSERT_NE(attention, nullptr) << print(*after);
    const Dimension heads = is_in_order ? 2 : 6;
    EXPECT_EQ(attention->input(1)->shape()[1], heads) << print(*after);
    EXPECT_EQ(attention->input(2)->shape()[1], heads) << print(*after);
    expect_same_results(*parse_graph(graph), *after, kReordered);
  }
}

TEST(RecognizeAttention, WithABias) {
  const std::string rest = " %p = softmax(%z) {axis = 3} %y = matmul(%p, %v)";
  for (const std::string bias : {"%b", "%wide"}) {
    expect_recognized("%s = matmul(%q, %t) %n = divide(%s, %root) %z = add(%n, " + bias + ")" + rest,
                      1 / 2.828427, true);
    expect_recognized("%s = matmul(%q, %t) %z = add(" + bias + ", %s)" + rest, 1, true);
  }
}

TEST(RecognizeAttention, WhereAConditionHides) {
  const std::string rest = " %p = softmax(%z) {axis = 3} %y = matmul(%p, %v)";
  expect_recognized("%s = matmul(%q, %t) %z = select(%m, %s, %least)" + rest, 1, true);
  expect_recognized("%s = matmul(%q, %t) %z = select(%m, %least, %s)" + rest, 1, true);
}

// A query from which all keys are hidden by the least number has equal weights, in 16 bits too.
TEST(RecognizeAttention, KeepsWhatHidesFiniteIn16Bits) {
  const std::string lines =
      "%s = matmul(%q, %t) %z = add(%s, %b) %p = softmax(%z) {axis = 3} %y = matmul(%p, %v)";
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    const std::unique_ptr<Graph> graph = parse_graph(graph_of(lines));
    EXPECT_TRUE(run_pass(*graph, kPass, {.options = {.precision = precision}}));
    run_pass(*graph, "remove_dead_code");
    std::vector<Tensor> inputs = graph_inputs(*graph);
    inputs[3] = Tensor::full(DataType::fp32, {2, 1, 1, 5}, std::numeric_limits<float>::lowest());
    const Node* attention = attention_in(*graph);
    ASSERT_NE(attention, nullptr);
    graph->add_output("bias", attention->input(3));
    const Tensor bias = run_reference(*graph, inputs).outputs[1];
    for (int64_t i = 0; i < bias.size(); ++i) {
      const DataType type = precision == Precision::fp16 ? DataType::fp16 : DataType::bf16;
      EXPECT_TRUE(std::isfinite(bias.cast(type).at(i))) << i;
    }
  }
}

TEST(RecognizeAttention, OthersStay) {
  const auto kept = [](const std::string& lines) { expect_no_change(kPass, graph_of(lines)); };
  kept("%s = matmul(%q, %t) %p = softmax(%s) {axis = 2} %y = matmul(%p, %v)");
  kept("%s = matmul(%q, %t) %z = select(%m, %s, %few) %p = softmax(%z) {axis = 3} %y = matmul(%p, %v)");
  kept("%s = matmul(%q, %t) %z = select(%m, %s, %much) %p = softmax(%z) {axis = 3} %y = matmul(%p, %v)");
  kept("%s = matmul(%q, %t) %z = multiply(%s, %wide) %p = softmax(%z) {axis = 3} %y = matmul(%p, %v)");
  kept(
      "%s = matmul(%q, %t) %p = softmax(%s) {axis = 3} %o = matmul(%p, %v) %y = reduce_sum(%o) {axes = [3]} "
      "output p = %p");
  kept("%s = matmul(%q, %t) %p = softmax(%s) {axis = 3} %y = matmul(%p, %v) output scores = %s");
}

}  // namespace
}  // namespace tessera::testing
