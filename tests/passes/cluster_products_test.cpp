#include <fmt/format.h>

#include "passes/pass_case.h"

namespace tessera::testing {
namespace {

PassContext with_kernel(decltype(PassTarget::clusters_products) takes) {
  PassContext context;
  context.target.clusters_products = std::move(takes);
  return context;
}

// A device with a kernel for work after products; one for work on both sides.
PassContext ending() {
  return with_kernel([](const Node* before, const Node&, const Node*) { return before == nullptr; });
}
PassContext beginning() {
  return with_kernel([](const Node* before, const Node&, const Node* after) {
    return before != nullptr || after != nullptr;
  });
}

TEST(ClusterProducts, TakeTheClusterThatReadsThem) {
  expect_rewrite("cluster_products",
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
    %v, %y, %s = fused(%a, %b, %z) {kind = "product_cluster"} body graph product_cluster(
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

TEST(ClusterProducts, TakeASingleOperatorAndAProductThatIsFused) {
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
  EXPECT_TRUE(run_pass("cluster_products", *graph, ending()));
  verify(*graph);
  ASSERT_EQ(graph->nodes().size(), 1u) << print(*graph);
  EXPECT_EQ(count_of_kind(*graph, "product_cluster"), 1u);
}

// The last product is made right before; what the first one makes is read by other nodes, too.
TEST(ClusterProducts, AreTheLastThatTheWorkReads) {
  const auto graph =
      parse_graph(R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5], input %c: fp32[5, 5]) {
    %u = matmul(%a, %b)
    %v = matmul(%u, %c)
    %y = multiply(%v, %u)
    output y = %y
  })");
  EXPECT_TRUE(run_pass("cluster_products", *graph, ending()));
  verify(*graph);
  ASSERT_EQ(graph->nodes().size(), 2u) << print(*graph);
  EXPECT_EQ(graph->nodes().front()->operator_name(), "matmul");
}

// %y waits for %u, which is made of %v outside.
TEST(ClusterProducts, StayWhereAWayLeadsThroughAnotherNode) {
  expect_untouched("cluster_products", R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5]) {
    %v = matmul(%a, %b)
    %u = softmax(%v)
    %y = multiply(%v, %u)
    output y = %y
  })",
                   ending());
}

// What the text becomes: how many nodes, of which one holds a product and others.
void expect_clustered(const char* text, size_t nodes, size_t members, const PassContext& context) {
  const auto graph = parse_graph(text);
  EXPECT_TRUE(run_pass("cluster_products", *graph, context));
  verify(*graph);
  EXPECT_EQ(graph->nodes().size(), nodes) << print(*graph);
  ASSERT_EQ(count_of_kind(*graph, "product_cluster"), 1u) << print(*graph);
  for (const auto& node : graph->nodes()) {
    if (node->body() != nullptr && node->attributes().text("kind") == "product_cluster") {
      EXPECT_EQ(node->body()->nodes().size(), members) << print(*graph);
    }
  }
}

TEST(ClusterProducts, TakeWhatMakesTheirFirstFactor) {
  expect_rewrite("cluster_products",
                 R"(graph g(input %a: fp32[3, 4], input %z: fp32[3, 4], input %b: fp32[4, 5]) {
    %f = fused(%a, %z) {kind = "cluster"} body graph cluster(input %a: fp32[3, 4], input %z: fp32[3, 4]) {
      %s = silu(%a)
      %f = multiply(%s, %z)
      output y0 = %f
    }
    %v = matmul(%f, %b)
    output v = %v
  })",
                 R"(graph g(input %a: fp32[3, 4], input %z: fp32[3, 4], input %b: fp32[4, 5]) {
    %v = fused(%a, %z, %b) {kind = "product_cluster"} body graph product_cluster(
      input %a: fp32[3, 4], input %z: fp32[3, 4], input %b: fp32[4, 5]) {
      %f = fused(%a, %z) {kind = "cluster"} body graph cluster(input %a: fp32[3, 4], input %z: fp32[3, 4]) {
        %s = silu(%a)
        %f = multiply(%s, %z)
        output y0 = %f
      }
      %v = matmul(%f, %b)
      output y0 = %v
    }
    output v = %v
  })",
                 0, beginning());
}

TEST(ClusterProducts, TakeWorkOnBothSidesOfAProductThatIsFused) {
  expect_clustered(R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5], input %c: fp32[5]) {
    %f = relu(%a)
    %v = fused(%b, %f, %c) {kind = "matmul"} body graph matmul(
      input %b: fp32[4, 5], input %f: fp32[3, 4], input %c: fp32[5]) {
      %p = matmul(%f, %b)
      %v = add(%p, %c)
      output y0 = %v
    }
    %y = exp(%v)
    output y = %y
  })",
                   1, 3, beginning());
}

// The device has no kernel for work after such a product alone.
TEST(ClusterProducts, TakeWorkAfterThemBesideThatBefore) {
  expect_clustered(
      R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5]) {
    %f = relu(%a)
    %v = matmul(%f, %b)
    %y = exp(%v)
    output y = %y
  })",
      1, 3, with_kernel([](const Node* before, const Node&, const Node*) { return before != nullptr; }));
}

// As above %y waits for %u, which %f does not.
TEST(ClusterProducts, TakeWhatIsBeforeThemWhereAWayLeadsThroughAnotherNode) {
  expect_clustered(R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5]) {
    %f = relu(%a)
    %v = matmul(%f, %b)
    %u = softmax(%v)
    %y = multiply(%v, %u)
    output y = %y
  })",
                   3, 2, beginning());
}

TEST(ClusterProducts, LeaveWorkBetweenTwoToTheFirst) {
  expect_clustered(R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5], input %c: fp32[5, 5]) {
    %u = matmul(%a, %b)
    %f = relu(%u)
    %v = matmul(%f, %c)
    output v = %v
  })",
                   2, 2, beginning());
}

TEST(ClusterProducts, LeaveFactorsThatOthersReadOrThatAreNotTheFirst) {
  for (const char* rest : {"%v = matmul(%f, %b) %y = reduce_sum(%f) {axes = [1]}",
                           "%v = matmul(%f, %b) %y = reshape(%f) {shape = [9]}",
                           "%v = matmul(%f, %f) %y = reshape(%b) {shape = [9]}",
                           "%v = matmul(%b, %f) %y = reshape(%b) {shape = [9]}"}) {
    const std::string text = fmt::format(
        "graph g(input %a: fp32[3, 3], input %b: fp32[3, 3]) {{\n  %f = relu(%a)\n  {}\n  output v = %v\n"
        "  output y = %y\n}}",
        rest);
    expect_untouched("cluster_products", text.c_str(), beginning());
  }
}

TEST(ClusterProducts, LeaveWorkOfSeveralResults) {
  expect_untouched("cluster_products",
                   R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5]) {
    %f, %s = fused(%a) {kind = "cluster"} body graph cluster(input %a: fp32[3, 4]) {
      %f = relu(%a)
      %s = reduce_sum(%f) {axes = [0]}
      output y0 = %f
      output y1 = %s
    }
    %v = matmul(%f, %b)
    output v = %v
    output s = %s
  })",
                   beginning());
}

// %f is computed once, beside what is read in each run.
TEST(ClusterProducts, LeaveWorkOnWhatIsFrozen) {
  PassContext context = beginning();
  context.options.frozen = true;
  constexpr const char* kText = R"(graph g(parameter %a: fp32[3, 4], input %b: fp32[4, 5]) {
    %f = relu(%a)
    %v = matmul(%f, %b)
    output v = %v
  })";
  expect_untouched("cluster_products", kText, context);
  expect_clustered(kText, 1, 2, beginning());
}

TEST(ClusterProducts, TakeWorkOnWhatTheOtherFactorIsMadeOfToo) {
  expect_clustered(R"(graph g(input %a: fp32[3, 3]) {
    %f = relu(%a)
    %u = softmax(%a)
    %v = matmul(%f, %u)
    output v = %v
  })",
                   2, 2, beginning());
}

TEST(ClusterProducts, StayWhereTheDeviceHasNoKernel) {
  constexpr const char* kText = R"(graph g(input %a: fp32[3, 4], input %b: fp32[4, 5]) {
    %v = matmul(%a, %b)
    %y = exp(%v)
    output y = %y
  })";
  expect_untouched("cluster_products", kText,
                   with_kernel([](const Node*, const Node&, const Node*) { return false; }));
  expect_untouched("cluster_products", kText);
}

}  // namespace
}  // namespace tessera::testing
