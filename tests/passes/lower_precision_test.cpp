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
