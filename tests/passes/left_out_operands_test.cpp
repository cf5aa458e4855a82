// Passes that make a node anew leave out what it leaves out.
#include "passes/run_pass.h"
#include "support/sample_operators.h"

namespace tessera::testing {
namespace {

TEST(LeftOutOperands, StayLeftOutInLowPrecision) {
  register_sample_operators();
  PassContext context;
  context.options.precision = Precision::bf16;
  const auto graph = parse_graph(R"(graph g(input %x: fp32[2, 2], input %scale: fp32[2, 2]) {
  %y = sample_affine(%x, _, %scale, %x)
  output y = %y
})");
  EXPECT_TRUE(run_pass(*graph, "lower_precision", context));
  verify(*graph);
  const Node& low = *graph->outputs()[0].value->producer()->input(0)->producer();
  ASSERT_EQ(low.operator_name(), "sample_affine");
  EXPECT_EQ(low.output()->data_type(), DataType::bf16);
  EXPECT_EQ(low.operand(1), nullptr);
  EXPECT_EQ(low.inputs().size(), 3u);
}

TEST(LeftOutOperands, MakeTwoNodesOfOneOperatorDifferent) {
  register_sample_operators();
  // x * x - x, x + x - x, and the first once more.
  const std::string text = R"(graph g(input %x: fp32[2]) {
  %a = sample_affine(%x, _, %x, %x)
  %b = sample_affine(%x, %x, _, %x)
  %c = sample_affine(%x, _, %x, %x)
  output a = %a
  output b = %b
  output c = %c
})";
  expect_pass("common_subexpressions", text, R"(graph g(input %x: fp32[2]) {
  %a = sample_affine(%x, _, %x, %x)
  %b = sample_affine(%x, %x, _, %x)
  output a = %a
  output b = %b
  output c = %a
})");
}

}  // namespace
}  // namespace tessera::testing
