#include "passes/pass_case.h"

namespace tessera::testing {
namespace {

PassContext ending(bool takes = true) {
  PassContext context;
  context.target.ends_products = [takes](const Node&, const Node&) { return takes; };
  return context;
}

TEST(EndProducts, TakeTheClusterThatReadsThem) {
  expect_rewrite("end_products",
                 R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5], input %z: fp32[3, 5]) {
    %v = matmul(%a, %b)
    %y, %s = fused(%v, %z) {kind = "cluster"} body graph cluster(input %v: fp32[3, 5], input %z: fp32[3, 5]) {
      %y = multiply(%v, %z)
      %s = reduce_sum(%y) {axes = [0]}
      output y0 = %y
      output y1 = %s
    }
    output y = %y
    output s = %s
    output v = %v
  })",
                 R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5], input %z: fp32[3, 5]) {
    %v, %y, %s = fused(%a, %b, %z) {kind = "ended_product"} body graph ended_product(
      input %a: fp32[3, 4], input %b: fp32[4, 5], input %z: fp32[3, 5]) {
      %v = matmul(%a, %b)
      %y, %s = fused(%v, %z) {kind = "cluster"} body graph cluster(input %v: fp32[3, 5], input %z: fp32[3, 5]) {
        %y = multiply(%v, %z)
        %s = reduce_sum(%y) {axes = [0]}
        output y0 = %y
        output y1 = %s
      }
      output y0 = %v
      output y1 = %y
      output y2 = %s
    }
    output y = %y
    output s = %s
    output v = %v
  })",
                 0, ending());
}

TEST(EndProducts, TakeASingleOperatorAndAProductThatIsFused) {
  const auto graph = parse_graph(R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5], input %c: fp32[5]) {
    %v = fused(%a, %b, %c) {kind = "matmul"} body graph matmul(
      input %a: fp32[3, 4], input %b: fp32[4, 5], input %c: fp32[5]) {
      %p = matmul(%a, %b)
      %v = add(%p, %c)
      output y0 = %v
    }
    %y = gelu(%v)
    output y = %y
  })");
  EXPECT_TRUE(run_pass("end_products", *graph, ending()));
  verify(*graph);
  ASSERT_EQ(graph->nodes().size(), 1u) << print(*graph);
  EXPECT_EQ(count_of_kind(*graph, "ended_product"), 1u);
}

// The last product is made right before; what the first one makes is read by other nodes, too.
TEST(EndProducts, AreTheLastThatTheWorkReads) {
  const auto graph =
      parse_graph(R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5], input %c: fp32[5, 5]) {
    %u = matmul(%a, %b)
    %v = matmul(%u, %c)
    %y = multiply(%v, %u)
    output y = %y
  })");
  EXPECT_TRUE(run_pass("end_products", *graph, ending()));
  verify(*graph);
  ASSERT_EQ(graph->nodes().size(), 2u) << print(*graph);
  EXPECT_EQ(graph->nodes().front()->operator_name(), "matmul");
}

// %y waits for %u, which is made of %v outside.
TEST(EndProducts, StayWhereAWayLeadsThroughAnotherNode) {
  expect_untouched("end_products", R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5]) {
    %v = matmul(%a, %b)
    %u = softmax(%v)
    %y = multiply(%v, %u)
    output y = %y
  })",
                   ending());
}

TEST(EndProducts, StayWhereTheDeviceHasNoKernel) {
  constexpr const char* kText = R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5]) {
    %v = matmul(%a, %b)
    %y = exp(%v)
    output y = %y
  })";
  expect_untouched("end_products", kText, ending(false));
  expect_untouched("end_products", kText);
}

}  // namespace
}  // namespace tessera::testing
