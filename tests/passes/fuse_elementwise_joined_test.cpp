// What the target allows beyond one reduction a cluster and connected work: for devices whose launches cost.
#include <gtest/gtest.h>

#include "passes/pass_case.h"

namespace tessera::testing {
namespace {

// The graph after the pass, which means the same as before.
std::unique_ptr<Graph> fused(const std::string& text, const PassContext& context) {
  const auto before = parse_graph(text);
  auto after = parse_graph(text);
  run_pass("fuse_elementwise", *after, context);
  verify(*after);
  const std::vector<Tensor> inputs = synthetic_inputs(*before);
  const ReferenceResult expected = run_reference(*before, inputs);
  const ReferenceResult actual = run_reference(*after, inputs);
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    EXPECT_TRUE(actual.outputs[i].identical(expected.outputs[i])) << before->outputs()[i].name;
  }
  return after;
}

// How many outputs each cluster has.
std::vector<size_t> outputs_of_clusters(const Graph& graph) {
  std::vector<size_t> counts;
  for (const auto& node : graph.nodes()) {
    if (node->body() != nullptr) counts.push_back(node->outputs().size());
  }
  return counts;
}

size_t clusters_of(const char* text, const PassContext& context) {
  return outputs_of_clusters(*fused(text, context)).size();
}

PassContext with_reductions(int count) {
  PassContext context;
  context.target.reductions_per_cluster = count;
  return context;
}

PassContext joining(int values) {
  PassContext context;
  context.target.values_per_joined_cluster = values;
  return context;
}

constexpr const char* kTwoSums = R"(graph g(input %x: fp32[4, 3], input %y: fp32[4, 3]) {
  %a = reduce_sum(%x) {axes = [0]}
  %p = multiply(%x, %y)
  %b = reduce_sum(%p) {axes = [0]}
  output a = %a
  output b = %b
})";

TEST(FuseElementwiseJoined, ReductionsOfOneValueShareALoopWhereTheDeviceTakesThem) {
  EXPECT_EQ(clusters_of(kTwoSums, with_reductions(1)), 1u);  // the product and its sum; the other stays alone
  const auto graph = parse_graph(kTwoSums);
  run_pass("fuse_elementwise", *graph, with_reductions(2));
  ASSERT_EQ(graph->nodes().size(), 1u);
  EXPECT_EQ(graph->nodes().front()->outputs().size(), 2u);
}

TEST(FuseElementwiseJoined, ReductionsOverDifferentAxesStayApart) {
  EXPECT_EQ(clusters_of(R"(graph g(input %x: fp32[4, 3]) {
    %e = exp(%x)
    %a = reduce_sum(%e) {axes = [0]}
    %b = reduce_sum(%e) {axes = [1]}
    output a = %a
    output b = %b
  })",
                        with_reductions(4)),
            1u);
}

constexpr const char* kTwoUpdates =
    R"(graph g(input %w: fp32[8], input %g: fp32[8], input %v: fp32[8], input %h: fp32[8]) {
  %a = multiply(%g, %g)
  %x = subtract(%w, %a)
  %b = multiply(%h, %h)
  %y = subtract(%v, %b)
  output x = %x
  output y = %y
})";

TEST(FuseElementwiseJoined, UnconnectedWorkOfOneShapeIsJoinedWhileItsValuesAreFew) {
  EXPECT_EQ(clusters_of(kTwoUpdates, joining(0)), 2u);
  EXPECT_EQ(clusters_of(kTwoUpdates, joining(6)), 1u);
  EXPECT_EQ(clusters_of(kTwoUpdates, joining(5)), 2u);
}

TEST(FuseElementwiseJoined, WorkOfAnotherShapeStaysApart) {
  EXPECT_EQ(clusters_of(R"(graph g(input %w: fp32[8], input %v: fp32[4, 2]) {
    %a = exp(%w)
    %x = negate(%a)
    %b = exp(%v)
    %y = negate(%b)
    output x = %x
    output y = %y
  })",
                        joining(48)),
            2u);
}

TEST(FuseElementwiseJoined, WorkThatDependsThroughAProductStaysApart) {
  EXPECT_EQ(clusters_of(R"(graph g(input %w: fp32[3, 3]) {
    %a = exp(%w)
    %x = negate(%a)
    %m = matmul(%x, %x)
    %b = exp(%m)
    %y = negate(%b)
    output y = %y
  })",
                        joining(48)),
            2u);
}

TEST(FuseElementwiseJoined, LargeWorkStaysApart) {
  const auto graph = parse_graph(R"(graph g(input %w: fp32[8000000], input %v: fp32[8000000]) {
    %a = exp(%w)
    %x = negate(%a)
    %b = exp(%v)
    %y = negate(%b)
    output x = %x
    output y = %y
  })");
  run_pass("fuse_elementwise", *graph, joining(48));
  EXPECT_EQ(graph->nodes().size(), 2u);
}

// y is made for a product, and once more for the gradient of its weights, which needs neither it nor dx.
constexpr const char* kMadeAgain =
    R"(graph g(input %x: fp32[4, 3], input %w: fp32[3, 5], input %dy: fp32[4, 3]) {
  %half: fp32[] = constant() {value = fp32[] (0.5)}
  %e = erf(%x)
  %y = multiply(%e, %half)
  %z = matmul(%y, %w)
  %half2: fp32[] = constant() {value = fp32[] ($NUMBER)}
  %e2 = erf($READ)
  %y2 = multiply(%e2, %half2)
  %dw = matmul(%y2, %z) {transpose_a = true}
  %s = exp(%x)
  %back = matmul(%z, %w) {transpose_b = true}
  %g = add(%s, %back)
  %dx = multiply(%dy, %g)
  output dw = %dw
  output dx = %dx
})";

std::vector<size_t> outputs_where_made_again(const std::string& number, const std::string& read) {
  std::string text = kMadeAgain;
  const auto put = [&](const std::string& word, const std::string& by) {
    text.replace(text.find(word), word.size(), by);
  };
  put("$NUMBER", number);
  put("$READ", read);
  return outputs_of_clusters(*fused(text, {}));
}

TEST(FuseElementwiseJoined, WhatIsMadeAgainIsMadeBesideTheLastThatReadsTheSame) {
  EXPECT_EQ(outputs_where_made_again("0.5", "%x"), (std::vector<size_t>{1, 2}));
  // Neither what is made once, nor of another value.
  EXPECT_EQ(outputs_where_made_again("0.25", "%x"), (std::vector<size_t>{1, 1, 1}));
  EXPECT_EQ(outputs_where_made_again("0.5", "%dy"), (std::vector<size_t>{1, 1, 1}));
}

// The gradient reads the cast that was made before.
TEST(FuseElementwiseJoined, WhatIsMadeAgainOfACastIsMadeBesideWhatReadsAnother) {
  const std::unique_ptr<Graph> graph = fused(
      R"(graph g(input %x: fp16[4, 3], input %w: fp16[3, 5], input %dy: fp16[4, 3]) {
  %wide = cast(%x) {type = fp32}
  %e = erf(%wide)
  %y = cast(%e) {type = fp16}
  %z = matmul(%y, %w)
  %wide2 = cast(%x) {type = fp32}
  %e2 = erf(%wide2)
  %y2 = cast(%e2) {type = fp16}
  %dw = matmul(%y2, %z) {transpose_a = true}
  %s = exp(%wide)
  %back = matmul(%z, %w) {transpose_b = true}
  %g = cast(%back) {type = fp32}
  %sum = add(%s, %g)
  %dx = cast(%sum) {type = fp16}
  output dw = %dw
  output dx = %dx
})",
      {});
  EXPECT_EQ(outputs_of_clusters(*graph), (std::vector<size_t>{1, 2}));
}

}  // namespace
}  // namespace tessera::testing
