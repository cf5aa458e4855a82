#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tessera/passes/fuse.h"

#include "passes/pass_case.h"

namespace tessera {
namespace {

using testing::expect_rewrite;
using testing::expect_untouched;

PassContext in(Precision precision) {
  PassContext context;
  context.options.precision = precision;
  return context;
}

constexpr double kTolerance = 0.05;  // bf16 keeps eight bits

// Of fp16, which keeps eleven bits, with numbers of up to 32.
constexpr double kManyRoundings = 0.1;

constexpr const char* kNetwork =
    R"(graph g(input %x: fp32[2, 3], parameter %w: fp32[3, 4], parameter %b: fp32[4]) {
  %product = matmul(%x, %w)
  %biased = add(%product, %b)
  %active = relu(%biased)
  %sum = reduce_sum(%active) {axes = [0]}
  output y = %sum
})";

TEST(LowerPrecision, ContractionsAndTheirFollowersAreInSixteenBits) {
  expect_rewrite("lower_precision", kNetwork,
                 R"(graph g(input %x: fp32[2, 3], parameter %w: fp32[3, 4], parameter %b: fp32[4]) {
  %cast = cast(%x) {type = bf16}
  %cast_1 = cast(%w) {type = bf16}
  %product_1 = matmul(%cast, %cast_1)
  %cast_2 = cast(%product_1) {type = fp32}
  %cast_3 = cast(%b) {type = bf16}
  %biased_1 = add(%product_1, %cast_3)
  %cast_4 = cast(%biased_1) {type = fp32}
  %active_1 = relu(%biased_1)
  %cast_5 = cast(%active_1) {type = fp32}
  %sum = reduce_sum(%cast_5) {axes = [0]}
  output y = %sum
})",
                 kTolerance, in(Precision::bf16));
}

TEST(LowerPrecision, AttentionsLogSumStaysWide) {
  expect_rewrite(
      "lower_precision",
      R"(graph g(input %q: fp32[1, 2, 3, 4], input %k: fp32[1, 2, 5, 4], input %dy: fp32[1, 2, 3, 4]) {
  %y, %log_sum = attention(%q, %k, %k) {scale = 0.5}
  %dq, %dk, %dv = attention_gradient(%dy, %q, %k, %k, %y, %log_sum) {scale = 0.5}
  output dq = %dq
})",
      R"(graph g(input %q: fp32[1, 2, 3, 4], input %k: fp32[1, 2, 5, 4], input %dy: fp32[1, 2, 3, 4]) {
  %cast = cast(%q) {type = bf16}
  %cast_1 = cast(%k) {type = bf16}
  %y_1, %y_1.log_sum = attention(%cast, %cast_1, %cast_1) {scale = 0.5}
  %cast_2 = cast(%y_1) {type = fp32}
  %cast_3 = cast(%dy) {type = bf16}
  %dq_1, %dq_1.k_gradient, %dq_1.v_gradient = attention_gradient(%cast_3, %cast, %cast_1, %cast_1, %y_1, %y_1.log_sum) {scale = 0.5}
  %cast_4 = cast(%dq_1) {type = fp32}
  %cast_5 = cast(%dq_1.k_gradient) {type = fp32}
  %cast_6 = cast(%dq_1.v_gradient) {type = fp32}
  output dq = %cast_4
})",
      kTolerance, in(Precision::bf16));
}

TEST(LowerPrecision, FullPrecisionChangesNothing) {
  expect_untouched("lower_precision", kNetwork, in(Precision::fp32));
  expect_untouched("lower_precision", kNetwork, in(Precision::tf32));
}

TEST(LowerPrecision, LeavesArithmeticAwayFromContractionsAlone) {
  expect_untouched("lower_precision", R"(graph g(input %x: fp32[2, 3]) {
  %y = relu(%x)
  %z = exp(%y)
  output z = %z
})",
                   in(Precision::fp16));
}

TEST(LowerPrecision, LeavesDoublesAlone) {
  expect_untouched("lower_precision", R"(graph g(input %x: fp64[2, 3], input %w: fp64[3, 2]) {
  %y = matmul(%x, %w)
  output y = %y
})",
                   in(Precision::fp16));
}

// The sum of embeddings is rounded once, where it is normalized, and what is added to it later is in 16 bits.
TEST(LowerPrecision, AnEncodersSumsNormsAndActivationsAreInSixteenBits) {
  expect_rewrite(
      "lower_precision",
      R"(graph g(input %words: fp32[2, 3, 4], parameter %positions: fp32[3, 4], parameter %scale: fp32[4], parameter %shift: fp32[4], parameter %w: fp32[4, 4], parameter %b: fp32[4], input %counter: int64[2]) {
  %x = add(%words, %positions)
  %n, %mean, %inverse = layer_norm(%x, %scale, %shift) {axes = 1, epsilon = 0.01}
  %h = matmul(%n, %w)
  %biased = add(%h, %b)
  %active = gelu(%biased)
  %kept = dropout(%active, %counter) {rate = 0.5, stream = 3}
  %next = add(%x, %kept)
  output next = %next
})",
      R"(graph g(input %words: fp32[2, 3, 4], parameter %positions: fp32[3, 4], parameter %scale: fp32[4], parameter %shift: fp32[4], parameter %w: fp32[4, 4], parameter %b: fp32[4], input %counter: int64[2]) {
  %x = add(%words, %positions)
  %cast = cast(%x) {type = fp16}
  %n_1, %n_1.mean, %n_1.inverse_deviation = layer_norm(%cast, %scale, %shift) {axes = 1, epsilon = 0.01}
  %cast_1 = cast(%n_1) {type = fp32}
  %cast_2 = cast(%w) {type = fp16}
  %h_1 = matmul(%n_1, %cast_2)
  %cast_3 = cast(%h_1) {type = fp32}
  %cast_4 = cast(%b) {type = fp16}
  %biased_1 = add(%h_1, %cast_4)
  %cast_5 = cast(%biased_1) {type = fp32}
  %active_1 = gelu(%biased_1)
  %cast_6 = cast(%active_1) {type = fp32}
  %kept_1 = dropout(%active_1, %counter) {rate = 0.5, stream = 3}
  %cast_7 = cast(%kept_1) {type = fp32}
  %next_1 = add(%cast, %kept_1)
  %cast_8 = cast(%next_1) {type = fp32}
  output next = %cast_8
})",
      kManyRoundings, in(Precision::fp16));
}

// What was given may have any range, also after a transpose; and what no product reads keeps its digits.
TEST(LowerPrecision, NormalizationsOfWhatWasGivenOrForNoProductStayWide) {
  expect_rewrite(
      "lower_precision",
      R"(graph g(input %x: fp32[4, 2], parameter %scale: fp32[4], parameter %shift: fp32[4], parameter %w: fp32[4, 4]) {
  %t = transpose(%x) {permutation = [1, 0]}
  %n, %mean, %inverse = layer_norm(%t, %scale, %shift) {axes = 1, epsilon = 0.01}
  %h = matmul(%n, %w)
  output h = %h
})",
      R"(graph g(input %x: fp32[4, 2], parameter %scale: fp32[4], parameter %shift: fp32[4], parameter %w: fp32[4, 4]) {
  %t = transpose(%x) {permutation = [1, 0]}
  %n, %mean, %inverse = layer_norm(%t, %scale, %shift) {axes = 1, epsilon = 0.01}
  %cast = cast(%n) {type = fp16}
  %cast_1 = cast(%w) {type = fp16}
  %h_1 = matmul(%cast, %cast_1)
  %cast_2 = cast(%h_1) {type = fp32}
  output h = %cast_2
})",
      kManyRoundings, in(Precision::fp16));
  expect_untouched("lower_precision",
                   R"(graph g(input %x: fp32[2, 4], parameter %scale: fp32[4], parameter %shift: fp32[4]) {
  %sum = add(%x, %x)
  %n, %mean, %inverse = layer_norm(%sum, %scale, %shift) {axes = 1, epsilon = 0.01}
  %y = relu(%n)
  output y = %y
})",
                   in(Precision::fp16));
}

TEST(LowerPrecision, CrossEntropyReadsSixteenBitsAndAddsUpInThirtyTwo) {
  expect_rewrite(
      "lower_precision",
      R"(graph g(input %x: fp32[2, 3], parameter %w: fp32[3, 4], input %labels: int32[2], input %dl: fp32[2]) {
  %logits = matmul(%x, %w)
  %loss = cross_entropy(%logits, %labels)
  %d = cross_entropy_gradient(%logits, %labels, %dl)
  output loss = %loss
  output d = %d
})",
      R"(graph g(input %x: fp32[2, 3], parameter %w: fp32[3, 4], input %labels: int32[2], input %dl: fp32[2]) {
  %cast = cast(%x) {type = bf16}
  %cast_1 = cast(%w) {type = bf16}
  %logits_1 = matmul(%cast, %cast_1)
  %cast_2 = cast(%logits_1) {type = fp32}
  %loss_1 = cross_entropy(%logits_1, %labels)
  %d_1 = cross_entropy_gradient(%logits_1, %labels, %dl)
  %cast_3 = cast(%d_1) {type = fp32}
  output loss = %loss_1
  output d = %cast_3
})",
      kTolerance, in(Precision::bf16));
}

// The gradient of the norm follows that of its result and what was normalized; those of scale and shift are
// sums.
TEST(LowerPrecision, GradientsOfNormsFollow) {
  for (const auto& [norm, attribute] :
       {std::pair("layer_norm", "axes = 1"), std::pair("group_norm", "groups = 2")}) {
    const std::unique_ptr<Graph> graph = parse_graph(fmt::format(
        R"(graph g(input %x: fp32[2, 3, 4], input %dy: fp32[2, 3, 4], parameter %scale: fp32[4], parameter %shift: fp32[4], parameter %w: fp32[4, 4]) {{
  %h = matmul(%x, %w)
  %n, %mean, %inverse = {0}(%h, %scale, %shift) {{{1}}}
  %dn = matmul(%dy, %w)
  %dh, %dscale, %dshift = {0}_gradient(%dn, %h, %scale, %mean, %inverse) {{{1}}}
  output n = %n
  output dh = %dh
  output dscale = %dscale
}})",
        norm, attribute));
    EXPECT_TRUE(testing::run_pass("lower_precision", *graph, in(Precision::bf16)));
    verify(*graph);
    EXPECT_EQ(graph->find("n_1")->data_type(), DataType::bf16);
    EXPECT_EQ(graph->find("dh_1")->data_type(), DataType::bf16);
    EXPECT_EQ(graph->find("dh_1")->producer()->output(1)->data_type(), DataType::fp32);
  }
}

// A loss that picks rows has gradients that are sums in fp32. The gradient of the norm before it is in 16
// bits in any case, and so are the residual sums before that.
TEST(LowerPrecision, GradientsOfResidualSumsOfAnEncoderAreInSixteenBits) {
  const std::unique_ptr<Graph> graph = parse_graph(
      R"(graph g(input %x: fp32[3, 4], input %rows: int32[2], input %dpicked: fp32[2, 4], parameter %scale: fp32[4], parameter %shift: fp32[4], parameter %w: fp32[4, 4]) {
  %h = matmul(%x, %w)
  %n, %mean, %inverse = layer_norm(%h, %scale, %shift) {axes = 1, epsilon = 0.01}
  %branch = matmul(%n, %w)
  %sum = add(%n, %branch)
  %m, %mean_1, %inverse_1 = layer_norm(%sum, %scale, %shift) {axes = 1, epsilon = 0.01}
  %picked = gather(%m, %rows) {axis = 0}
  %y = matmul(%picked, %w)
  %dm = scatter_add(%rows, %dpicked) {extent = [3]}
  %dsum, %dscale_1, %dshift_1 = layer_norm_gradient(%dm, %sum, %scale, %mean_1, %inverse_1) {axes = 1}
  %dbranch = matmul(%dsum, %w) {transpose_b = true}
  %dn = add(%dsum, %dbranch)
  %dh, %dscale, %dshift = layer_norm_gradient(%dn, %h, %scale, %mean, %inverse) {axes = 1}
  output y = %y
  output dh = %dh
  output dscale = %dscale
})");
  EXPECT_TRUE(testing::run_pass("lower_precision", *graph, in(Precision::bf16)));
  verify(*graph);
  EXPECT_EQ(graph->find("picked_1")->data_type(), DataType::bf16);
  EXPECT_EQ(graph->find("dm")->data_type(), DataType::fp32);
  EXPECT_EQ(graph->find("dsum_1")->data_type(), DataType::bf16);
  EXPECT_EQ(graph->find("dn_1")->data_type(), DataType::bf16);
  EXPECT_EQ(graph->find("dh_1")->data_type(), DataType::bf16);
  EXPECT_EQ(graph->find("dh_1")->producer()->output(1)->data_type(), DataType::fp32);
}

// As their results do.
TEST(LowerPrecision, GradientsOfWideNormsStayWide) {
  const std::unique_ptr<Graph> graph = parse_graph(
      R"(graph g(input %x: fp32[3, 4], input %dy: fp32[3, 4], parameter %scale: fp32[4], parameter %shift: fp32[4], parameter %w: fp32[4, 4]) {
  %n, %mean, %inverse = layer_norm(%x, %scale, %shift) {axes = 1, epsilon = 0.01}
  %h = matmul(%n, %w)
  %dx, %dscale, %dshift = layer_norm_gradient(%dy, %x, %scale, %mean, %inverse) {axes = 1}
  output h = %h
  output dx = %dx
})");
  EXPECT_TRUE(testing::run_pass("lower_precision", *graph, in(Precision::fp16)));
  EXPECT_EQ(graph->find("n")->data_type(), DataType::fp32);
  EXPECT_EQ(graph->find("dx")->producer()->input(0), graph->find_input("dy"));
}

// Rows of a table of parameters keep their digits, though products read the table in 16 bits; rows of what a
// product made are as it is. The greatest of 16-bit numbers is where that of their fp32 forms is.
TEST(LowerPrecision, PicksFromSixteenBitsAndFromWideTables) {
  expect_rewrite("lower_precision",
                 R"(graph g(parameter %table: fp32[3, 4], input %rows: int32[2]) {
  %x = gather(%table, %rows) {axis = 0}
  %logits = matmul(%x, %table) {transpose_b = true}
  %likeliest = argmax(%logits)
  %picked = gather(%logits, %rows) {axis = 1}
  output x = %x
  output likeliest = %likeliest
  output picked = %picked
})",
                 R"(graph g(parameter %table: fp32[3, 4], input %rows: int32[2]) {
  %x = gather(%table, %rows) {axis = 0}
  %cast = cast(%x) {type = bf16}
  %cast_1 = cast(%table) {type = bf16}
  %logits_1 = matmul(%cast, %cast_1) {transpose_b = true}
  %cast_2 = cast(%logits_1) {type = fp32}
  %likeliest_1 = argmax(%logits_1)
  %picked_1 = gather(%logits_1, %rows) {axis = 1}
  %cast_3 = cast(%picked_1) {type = fp32}
  output x = %x
  output likeliest = %likeliest_1
  output picked = %cast_3
})",
                 kTolerance, in(Precision::bf16));
}

// Of a part that nobody reads the gradient is zeros, which have no digits to lose.
TEST(LowerPrecision, JoinsSixteenBitsWithARepeatedNumber) {
  const std::unique_ptr<Graph> graph = parse_graph(
      R"(graph g(input %x: fp32[2, 3], parameter %w: fp32[3, 4], input %number: fp32[]) {
  %h = matmul(%x, %w)
  %rest = broadcast_to(%number) {shape = [1, 4]}
  %y = concat(%h, %rest) {axis = 0}
  output y = %y
})");
  EXPECT_TRUE(testing::run_pass("lower_precision", *graph, in(Precision::bf16)));
  verify(*graph);
  EXPECT_EQ(graph->find("y_1")->data_type(), DataType::bf16);
}

// What was given and what was computed, joined, is rounded once for those who read it as it is and through a
// view.
TEST(LowerPrecision, RoundsAJoinOnceForAViewToo) {
  const std::unique_ptr<Graph> graph = parse_graph(
      R"(graph g(input %kept: fp32[2, 3, 4], input %x: fp32[2, 3, 4], parameter %w: fp32[4, 5]) {
  %y = exp(%x)
  %both = concat(%kept, %y) {axis = 1}
  %h = matmul(%both, %w)
  %rows = reshape(%both) {shape = [12, 4]}
  %g = matmul(%rows, %w)
  output h = %h
  output g = %g
})");
  EXPECT_TRUE(testing::run_pass("lower_precision", *graph, in(Precision::bf16)));
  verify(*graph);
  const std::vector<Node*> casts = nodes_of(*graph, "cast");
  const auto of_join = std::ranges::count_if(casts, [](const Node* cast) {
    return cast->input(0)->producer() != nullptr && cast->input(0)->producer()->operator_name() != "matmul";
  });
  EXPECT_EQ(of_join, 1) << print(*graph);
}

// Where what computes a gradient in fp32 can round it as it writes it.
TEST(LowerPrecision, RoundsBeforeAView) {
  expect_rewrite("lower_precision",
                 R"(graph g(input %x: fp32[2, 3, 4], parameter %w: fp32[4, 5]) {
  %y = exp(%x)
  %rows = reshape(%y) {shape = [6, 4]}
  %h = matmul(%rows, %w)
  output h = %h
})",
                 R"(graph g(input %x: fp32[2, 3, 4], parameter %w: fp32[4, 5]) {
  %y = exp(%x)
  %rows = reshape(%y) {shape = [6, 4]}
  %cast = cast(%y) {type = fp16}
  %rows_1 = reshape(%cast) {shape = [6, 4]}
  %cast_1 = cast(%w) {type = fp16}
  %h_1 = matmul(%rows_1, %cast_1)
  %cast_2 = cast(%h_1) {type = fp32}
  output h = %cast_2
})",
                 kManyRoundings, in(Precision::fp16));
}

// Near 1 and near 0 its digits are lost in 16 bits, before a logarithm for example.
TEST(LowerPrecision, SigmoidsStayWide) {
  const std::unique_ptr<Graph> graph = parse_graph(
      R"(graph g(input %x: fp32[2, 3], parameter %w: fp32[3, 4]) {
  %h = matmul(%x, %w)
  %y = sigmoid(%h)
  output y = %y
})");
  EXPECT_TRUE(testing::run_pass("lower_precision", *graph, in(Precision::fp16)));
  EXPECT_EQ(graph->find("y")->producer()->input(0)->data_type(), DataType::fp32);
}

// A bias that some addition reads in 16 bit is itself kept, and changed, in 32.
TEST(LowerPrecision, UpdatesOfMasterWeightsStayWide) {
  const std::unique_ptr<Graph> graph = parse_graph(
      R"(graph g(input %x: fp32[2, 3], parameter %w: fp32[3, 4], parameter %b: fp32[4], input %go: bool[]) {
  %product = matmul(%x, %w)
  %biased = add(%product, %b)
  %change = reduce_sum(%biased) {axes = [0]}
  %moved = subtract(%b, %change)
  %next = select(%go, %moved, %b)
  output y = %biased
  update %b = %next
})");
  EXPECT_TRUE(testing::run_pass("lower_precision", *graph, in(Precision::fp16)));
  EXPECT_EQ(graph->find("biased_1")->data_type(), DataType::fp16);
  EXPECT_EQ(graph->updates()[0].next->producer()->operator_name(), "select");
  EXPECT_EQ(graph->updates()[0].next->producer()->input(2), graph->find_input("b"));
}

}  // namespace
}  // namespace tessera
