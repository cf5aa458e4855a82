#include "tessera/device/common/attention_patterns.h"

#include "tessera/device/common/moved_view.h"
#include "tessera/passes/fuse.h"

#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

PassContext context_that_takes(bool all) {
  const auto takes = [all](const Node&) { return all; };
  return brings({backend::attention_gradient_pattern(takes), backend::attention_pattern(takes)});
}

void expect_fusion(const std::string& text, const std::string& expected) {
  expect_pass("fuse_patterns", text, expected, context_that_takes(true), kSameBits);
}

void expect_none(const std::string& text) {
  expect_no_change("fuse_patterns", text, context_that_takes(true));
}

// Three tokens with two heads of width 4, those of queries, keys and values in one product.
const std::string kJoined = R"(
  %r = reshape(%x) {shape = [2, 3, 3, 2, 4]}
  %t = transpose(%r) {permutation = [2, 0, 3, 1, 4]}
  %sq, %sk, %sv = split(%t) {axis = 0, sizes = [1, 1, 1]}
  %q = reshape(%sq) {shape = [2, 2, 3, 4]}
  %k = reshape(%sk) {shape = [2, 2, 3, 4]}
  %v = reshape(%sv) {shape = [2, 2, 3, 4]}
  %y, %log_sum = attention(%q, %k, %v) {scale = 0.5, causal = true}
  %z = transpose(%y) {permutation = [0, 2, 1, 3]}
)";

const std::string kJoinedFusion = R"(
  %r = reshape(%x) {shape = [2, 3, 3, 2, 4]}
  %z, %log_sum = fused(%r) {kind = "attention", role_values = [5, 6, 7, 8, 9], roles = ["q", "k", "v", "y", "log_sum"]} body graph attention(
    input %r: fp32[2, 3, 3, 2, 4]) {
    %t = transpose(%r) {permutation = [2, 0, 3, 1, 4]}
    %sq, %sk, %sv = split(%t) {axis = 0, sizes = [1, 1, 1]}
    %q = reshape(%sq) {shape = [2, 2, 3, 4]}
    %k = reshape(%sk) {shape = [2, 2, 3, 4]}
    %v = reshape(%sv) {shape = [2, 2, 3, 4]}
    %y, %log_sum = attention(%q, %k, %v) {scale = 0.5, causal = true}
    %z = transpose(%y) {permutation = [0, 2, 1, 3]}
    output y0 = %z
    output y1 = %log_sum
  }
  %joined = reshape(%z) {shape = [2, 3, 8]}
)";

TEST(AttentionPatterns, TakesPartsOfOneProduct) {
  const std::string input = "graph g(input %x: fp32[2, 3, 24]) {";
  expect_fusion(input + kJoined + R"(
  %joined = reshape(%z) {shape = [2, 3, 8]}
  output joined = %joined
})",
                input + kJoinedFusion + "output joined = %joined\n}");
}

// What a transformer's layer is once it is differentiated. Both halves read the product.
const std::string kTrained = "graph g(input %x: fp32[2, 3, 24], input %dj: fp32[2, 3, 8]) {" + kJoined + R"(
  %joined = reshape(%z) {shape = [2, 3, 8]}
  %dz = reshape(%dj) {shape = [2, 3, 2, 4]}
  %dy = transpose(%dz) {permutation = [0, 2, 1, 3]}
  %dq, %dk, %dv = attention_gradient(%dy, %q, %k, %v, %y, %log_sum) {scale = 0.5, causal = true}
  %rq = reshape(%dq) {shape = [1, 2, 2, 3, 4]}
  %rk = reshape(%dk) {shape = [1, 2, 2, 3, 4]}
  %rv = reshape(%dv) {shape = [1, 2, 2, 3, 4]}
  %all = concat(%rq, %rk, %rv) {axis = 0}
  %moved = transpose(%all) {permutation = [1, 3, 0, 2, 4]}
  %dx = reshape(%moved) {shape = [2, 3, 24]}
  output joined = %joined
  output dx = %dx
})";

TEST(AttentionPatterns, GradientReadsTheTransposedResultAndWritesOneProduct) {
  expect_fusion(kTrained,
                "graph g(input %x: fp32[2, 3, 24], input %dj: fp32[2, 3, 8]) {" + kJoinedFusion + R"(
  %dz = reshape(%dj) {shape = [2, 3, 2, 4]}
  %moved = fused(%r, %dz, %z, %log_sum) {kind = "attention_gradient", role_values = [11, 8, 9, 10, 12, 3, 13, 14, 15], roles = ["output_gradient", "q", "k", "v", "y", "log_sum", "q_gradient", "k_gradient", "v_gradient"]} body graph attention_gradient(
    input %r: fp32[2, 3, 3, 2, 4], input %dz: fp32[2, 3, 2, 4], input %z: fp32[2, 3, 2, 4],
    input %log_sum: fp32[2, 2, 3]) {
    %t_1 = transpose(%r) {permutation = [2, 0, 3, 1, 4]}
    %sq_1, %sq_1.1, %sq_1.2 = split(%t_1) {axis = 0, sizes = [1, 1, 1]}
    %q_1 = reshape(%sq_1) {shape = [2, 2, 3, 4]}
    %k_1 = reshape(%sq_1.1) {shape = [2, 2, 3, 4]}
    %v_1 = reshape(%sq_1.2) {shape = [2, 2, 3, 4]}
    %dy = transpose(%dz) {permutation = [0, 2, 1, 3]}
    %transpose = transpose(%z) {permutation = [0, 2, 1, 3]}
    %dq, %dk, %dv = attention_gradient(%dy, %q_1, %k_1, %v_1, %transpose, %log_sum) {scale = 0.5, causal = true}
    %rq = reshape(%dq) {shape = [1, 2, 2, 3, 4]}
    %rk = reshape(%dk) {shape = [1, 2, 2, 3, 4]}
    %rv = reshape(%dv) {shape = [1, 2, 2, 3, 4]}
    %all = concat(%rq, %rk, %rv) {axis = 0}
    %moved = transpose(%all) {permutation = [1, 3, 0, 2, 4]}
    output y0 = %moved
  }
  %dx = reshape(%moved) {shape = [2, 3, 24]}
  output joined = %joined
  output dx = %dx
})");
}

// Two heads of width 4: rows of 8 are a token, and 24 what one token has in all.
TEST(AttentionPatterns, KernelsReadThreePartsOfOneProduct) {
  const std::unique_ptr<Graph> graph = parse_graph(kTrained);
  ASSERT_TRUE(run_pass(*graph, "fuse_patterns", context_that_takes(true)));
  const std::vector<Node*> fused = nodes_of(*graph, "fused");
  ASSERT_EQ(fused.size(), 2U);
  const auto expect_view = [](const backend::PlacedView& actual, size_t place, int64_t offset,
                              const std::vector<int64_t>& strides) {
    EXPECT_EQ(actual.place, place);
    EXPECT_EQ(actual.view.shape, (Shape{2, 2, 3, 4}));
    EXPECT_EQ(actual.view.memory.offset, offset);
    EXPECT_EQ(actual.view.memory.strides, strides);
  };
  const std::vector<int64_t> inside{72, 4, 24, 1}, alone{24, 4, 8, 1};
  for (const Node* node : fused) {
    expect_view(backend::view_in_input(*node, "q"), 0, 0, inside);
    expect_view(backend::view_in_input(*node, "k"), 0, 8, inside);
    expect_view(backend::view_in_input(*node, "v"), 0, 16, inside);
  }
  expect_view(backend::view_in_output(*fused.front(), "y"), 0, 0, alone);
  expect_view(backend::view_in_input(*fused.back(), "output_gradient"), 1, 0, alone);
  expect_view(backend::view_in_input(*fused.back(), "y"), 2, 0, alone);
  expect_view(backend::view_in_output(*fused.back(), "q_gradient"), 0, 0, inside);
  expect_view(backend::view_in_output(*fused.back(), "k_gradient"), 0, 8, inside);
  expect_view(backend::view_in_output(*fused.back(), "v_gradient"), 0, 16, inside);
}

// A result that is wanted as it is stays so, and so do keys whose width is no longer the last axis in memory.
TEST(AttentionPatterns, TakesSomeOperandsWhoeverElseReadsThem) {
  const std::string inputs =
      "graph g(input %xq: fp32[2, 3, 2, 4], input %k: fp32[2, 2, 5, 4], input %xv: fp32[2, 2, 4, 5]) {\n";
  const std::string moves = R"(
  %q = transpose(%xq) {permutation = [0, 2, 1, 3]}
  %v = transpose(%xv) {permutation = [0, 1, 3, 2]}
)";
  const std::string rest = R"(
  %z = transpose(%y) {permutation = [0, 2, 1, 3]}
  output y = %y
  output z = %z
  output q = %q
})";
  expect_fusion(inputs + moves + "%y, %log_sum = attention(%q, %k, %v) {scale = 0.5}" + rest,
                inputs + moves + R"(
  %y, %log_sum = fused(%xq, %k, %v) {kind = "attention", role_values = [3, 1, 2, 4, 5], roles = ["q", "k", "v", "y", "log_sum"]} body graph attention(
    input %xq: fp32[2, 3, 2, 4], input %k: fp32[2, 2, 5, 4], input %v: fp32[2, 2, 5, 4]) {
    %q_1 = transpose(%xq) {permutation = [0, 2, 1, 3]}
    %y, %log_sum = attention(%q_1, %k, %v) {scale = 0.5}
    output y0 = %y
    output y1 = %log_sum
  })" + rest);
}

// Queries of one text, keys and values of another; only what belongs together is joined.
TEST(AttentionPatterns, TakesAttentionToAnotherText) {
  const std::string inputs = R"(graph g(input %xq: fp32[2, 3, 2, 4], input %xk: fp32[2, 5, 16],
    input %bias: fp32[1, 1, 3, 5], input %dy: fp32[2, 2, 3, 4]) {
)";
  expect_fusion(inputs + R"(
  %q = transpose(%xq) {permutation = [0, 2, 1, 3]}
  %r = reshape(%xk) {shape = [2, 5, 2, 2, 4]}
  %t = transpose(%r) {permutation = [2, 0, 3, 1, 4]}
  %sk, %sv = split(%t) {axis = 0, sizes = [1, 1]}
  %k = reshape(%sk) {shape = [2, 2, 5, 4]}
  %v = reshape(%sv) {shape = [2, 2, 5, 4]}
  %log_sum = constant() {value = fp32[1, 1, 1] (1)}
  %sums = broadcast_to(%log_sum) {shape = [2, 2, 3]}
  %dq, %dk, %dv = attention_gradient(%dy, %q, %k, %v, %dy, %sums, %bias) {scale = 0.5}
  %mq = transpose(%dq) {permutation = [0, 2, 1, 3]}
  %rk = reshape(%dk) {shape = [1, 2, 2, 5, 4]}
  %rv = reshape(%dv) {shape = [1, 2, 2, 5, 4]}
  %all = concat(%rk, %rv) {axis = 0}
  output mq = %mq
  output all = %all
})",
                inputs + R"(
  %r = reshape(%xk) {shape = [2, 5, 2, 2, 4]}
  %log_sum = constant() {value = fp32[1, 1, 1] (1)}
  %sums = broadcast_to(%log_sum) {shape = [2, 2, 3]}
  %mq, %all = fused(%xq, %r, %dy, %sums, %bias) {kind = "attention_gradient", role_values = [2, 5, 9, 10, 2, 3, 4, 11, 12, 13], roles = ["output_gradient", "q", "k", "v", "y", "log_sum", "bias", "q_gradient", "k_gradient", "v_gradient"]} body graph attention_gradient(
    input %xq: fp32[2, 3, 2, 4], input %r: fp32[2, 5, 2, 2, 4], input %dy: fp32[2, 2, 3, 4],
    input %sums: fp32[2, 2, 3], input %bias: fp32[1, 1, 3, 5]) {
    %q = transpose(%xq) {permutation = [0, 2, 1, 3]}
    %t = transpose(%r) {permutation = [2, 0, 3, 1, 4]}
    %sk, %sv = split(%t) {axis = 0, sizes = [1, 1]}
    %k = reshape(%sk) {shape = [2, 2, 5, 4]}
    %v = reshape(%sv) {shape = [2, 2, 5, 4]}
    %dq, %dk, %dv = attention_gradient(%dy, %q, %k, %v, %dy, %sums, %bias) {scale = 0.5}
    %mq = transpose(%dq) {permutation = [0, 2, 1, 3]}
    %rk = reshape(%dk) {shape = [1, 2, 2, 5, 4]}
    %rv = reshape(%dv) {shape = [1, 2, 2, 5, 4]}
    %all = concat(%rk, %rv) {axis = 0}
    output y0 = %mq
    output y1 = %all
  }
  output mq = %mq
  output all = %all
})");
}

TEST(AttentionPatterns, LeaveWhatTheDeviceDoesNotTake) {
  expect_no_change("fuse_patterns", kTrained, context_that_takes(false));
}

TEST(AttentionPatterns, LeaveWhatNothingMoves) {
  expect_none(R"(graph g(input %xq: fp32[2, 6, 4], input %k: fp32[2, 2, 5, 4], input %v: fp32[2, 2, 5, 4]) {
  %q = reshape(%xq) {shape = [2, 2, 3, 4]}
  %y, %log_sum = attention(%q, %k, %v) {scale = 0.5}
  %z = reshape(%y) {shape = [2, 6, 4]}
  output z = %z
})");
}

// 2 numbers of 4 bytes.
TEST(AttentionPatterns, LeaveRowsThatBeginAtNoWholeAccess) {
  expect_none(R"(graph g(input %x: fp32[2, 3, 2, 2], input %k: fp32[2, 2, 5, 2], input %v: fp32[2, 2, 5, 2]) {
  %q = transpose(%x) {permutation = [0, 2, 1, 3]}
  %y, %log_sum = attention(%q, %k, %v) {scale = 0.5}
  %z = transpose(%y) {permutation = [0, 2, 1, 3]}
  output z = %z
})");
}

TEST(AttentionPatterns, LeaveResultsThatAreJoinedWithOthers) {
  expect_none(R"(graph g(input %q: fp32[1, 2, 3, 4], input %k: fp32[1, 2, 5, 4], input %v: fp32[1, 2, 5, 4]) {
  %y, %log_sum = attention(%q, %k, %v) {scale = 0.5}
  %j = concat(%y, %q) {axis = 0}
  %z = transpose(%j) {permutation = [0, 2, 1, 3]}
  output z = %z
})");
}

// A bias whose heads stand before the batch, as scores by distance do, and its gradient.
const std::string kBiased = R"(graph g(input %q: fp32[2, 3, 4, 8], input %dy: fp32[2, 3, 4, 8],
    input %b: fp32[3, 2, 4, 4], input %y: fp32[2, 3, 4, 8], input %log_sum: fp32[2, 3, 4]) {
  %bias = transpose(%b) {permutation = [1, 0, 2, 3]}
  %dq, %dk, %dv = attention_gradient(%dy, %q, %q, %q, %y, %log_sum, %bias) {scale = 0.5}
  %db = attention_bias_gradient(%dy, %q, %q, %q, %y, %log_sum, %bias) {scale = 0.5}
  output dq = %dq
  output dk = %dk
  output dv = %dv
  output db = %db
})";

// How many nodes there are after the pass, and how many of them are fused.
std::pair<size_t, size_t> nodes_after(const std::string& text, const FusionPattern& pattern) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  run_pass(*graph, "fuse_patterns", brings({pattern}));
  verify(*graph);
  return {graph->nodes().size(), nodes_of(*graph, "fused").size()};
}

TEST(AttentionPatterns, GradientTakesInThatOfTheBias) {
  using Nodes = std::pair<size_t, size_t>;
  const auto all = [](const Node&) { return true; };
  EXPECT_EQ(nodes_after(kBiased, backend::attention_gradient_pattern(all, all)), Nodes(1, 1));
  // Kernels that make no gradient of a bias still read it where it lies; the other then reads a transpose.
  EXPECT_EQ(nodes_after(kBiased, backend::attention_gradient_pattern(all)), Nodes(3, 1));
  // Of one number for several scores, of other operands, and of a mask it is no part of the kernel.
  std::string text = kBiased;
  text.replace(text.find("%db = attention_bias_gradient(%dy"), 33, "%db = attention_bias_gradient(%y ");
  EXPECT_EQ(nodes_after(text, backend::attention_gradient_pattern(all, all)), Nodes(3, 1));
  text = kBiased;
  text.replace(text.find("[3, 2, 4, 4]"), 12, "[3, 1, 4, 4]");
  EXPECT_EQ(nodes_after(text, backend::attention_gradient_pattern(all, all)), Nodes(3, 1));
}

}  // namespace
}  // namespace tessera::testing
