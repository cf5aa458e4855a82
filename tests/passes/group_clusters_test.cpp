#include <fmt/format.h>

#include "passes/pass_case.h"

namespace tessera::testing {
namespace {

PassContext grouping(int64_t values = 100) {
  PassContext context;
  context.target.values_per_group = values;
  return context;
}

TEST(GroupClusters, TakesWhatTheEndOfTheStepNeedsAlone) {
  expect_rewrite(
      "group_clusters",
      R"(graph g(input %a: fp32[3, 4], input %b: fp32[3, 4], input %w: fp32[4], parameter %p: fp32[3, 3], parameter %q: fp32[5]) {
    %d = matmul(%a, %b) {transpose_b = true}
    %p_next = subtract(%p, %d)
    %l = log_softmax(%q)
    %square = square(%l)
    output sum = %p_next
    output square = %square
  })",
      R"(graph g(input %a: fp32[3, 4], input %b: fp32[3, 4], input %w: fp32[4], parameter %p: fp32[3, 3], parameter %q: fp32[5]) {
    %d = matmul(%a, %b) {transpose_b = true}
    %l = log_softmax(%q)
    %p_next, %square = fused(%p, %d, %l) {kind = "clusters"} body graph clusters(
      input %p: fp32[3, 3], input %d: fp32[3, 3], input %l: fp32[5]) {
      %p_next = fused(%p, %d) {kind = "cluster"} body graph cluster(input %p: fp32[3, 3], input %d: fp32[3, 3]) {
        %p_next = subtract(%p, %d)
        output y0 = %p_next
      }
      %square = fused(%l) {kind = "cluster"} body graph cluster(input %l: fp32[5]) {
        %square = square(%l)
        output y0 = %square
      }
      output y0 = %p_next
      output y1 = %square
    }
    output sum = %p_next
    output square = %square
  })",
      0, grouping());
}

TEST(GroupClusters, TakesWhatNeedsTheStartAloneAndKeepsItApartFromTheEnd) {
  const auto graph = parse_graph(R"(graph g(parameter %a: fp32[3, 4], parameter %b: fp32[4, 2]) {
    %a16 = cast(%a) {type = fp16}
    %b16 = cast(%b) {type = fp16}
    %c = matmul(%a16, %b16)
    %x = exp(%c)
    %y = reduce_sum(%c)
    output x = %x
    output y = %y
  })");
  EXPECT_TRUE(run_pass("group_clusters", *graph, grouping()));
  verify(*graph);
  ASSERT_EQ(graph->nodes().size(), 3u) << print(*graph);
  EXPECT_EQ(count_of_kind(*graph, "clusters"), 2u);
}

// Scaled gradients of two buckets, of which %z is read by others, too: it stays alone.
TEST(GroupClusters, TakesWhatOneCollectiveWaitsForAndNobodyElse) {
  const auto grouped = [](int64_t ranks) {
    const auto graph = parse_graph(fmt::format(R"(graph g(input %a: fp32[3, 3], input %b: fp32[3, 3]) {{
    %p = matmul(%a, %b)
    %q = matmul(%p, %b)
    %r = matmul(%q, %b)
    %u = negate(%p)
    %v = negate(%q)
    %w = exp(%q)
    %z = negate(%r)
    %s = negate(%r)
    %t = matmul(%z, %b)
    %of_u, %of_v = all_reduce(%u, %v) {{ranks = {0}}}
    %of_w, %of_z, %of_s = all_reduce(%w, %z, %s) {{ranks = {0}}}
    output u = %of_u
    output v = %of_v
    output w = %of_w
    output z = %of_z
    output s = %of_s
    output t = %t
  }})",
                                               ranks));
    EXPECT_EQ(run_pass("group_clusters", *graph, grouping()), ranks > 1);
    verify(*graph);
    std::vector<size_t> sizes;
    for (const auto& node : graph->nodes()) {
      if (node->operator_name() == "fused") sizes.push_back(node->outputs().size());
    }
    return sizes;
  };
  EXPECT_EQ(grouped(2), (std::vector<size_t>{2, 2}));
  EXPECT_EQ(grouped(1), std::vector<size_t>{});
}

TEST(GroupClusters, LeavesWhatLiesBetween) {
  expect_untouched("group_clusters", R"(graph g(input %a: fp32[3, 3], input %b: fp32[3, 3]) {
    %c = matmul(%a, %b)
    %x = exp(%c)
    %y = sqrt(%c)
    %d = matmul(%x, %y)
    output d = %d
  })",
                   grouping());
}

TEST(GroupClusters, NeverPutsWhatDependsOnEachOtherTogether) {
  // Two norms, their sum, and two updates by it: three steps, two of which are groups.
  const char* text =
      R"(graph g(input %a: fp32[3, 3], input %b: fp32[3, 3], parameter %p: fp32[3, 3], parameter %q: fp32[3]) {
    %dp = matmul(%a, %b)
    %dq = log_softmax(%q)
    %np = reduce_sum(%dp)
    %nq = reduce_sum(%dq)
    %norm = add(%np, %nq)
    %p1 = multiply(%dp, %norm)
    %q1 = multiply(%dq, %norm)
    output p = %p1
    output q = %q1
  })";
  const auto graph = parse_graph(text);
  EXPECT_TRUE(run_pass("group_clusters", *graph, grouping()));
  verify(*graph);
  EXPECT_EQ(count_of_kind(*graph, "clusters"), 2u) << print(*graph);
  EXPECT_EQ(graph->nodes().size(), 5u);
  const auto before = parse_graph(text);
  const std::vector<Tensor> inputs = synthetic_inputs(*before);
  const ReferenceResult expected = run_reference(*before, inputs);
  const ReferenceResult actual = run_reference(*graph, inputs);
  for (size_t i = 0; i < expected.outputs.size(); ++i)
    EXPECT_TRUE(actual.outputs[i].identical(expected.outputs[i]));
}

constexpr const char* kFour =
    R"(graph g(parameter %a: fp32[4], parameter %b: fp32[3], parameter %c: fp32[2], parameter %d: fp32[5]) {
    %x = exp(%a)
    %y = exp(%b)
    %z = exp(%c)
    %u = exp(%d)
    output x = %x
    output y = %y
    output z = %z
    output u = %u
  })";

TEST(GroupClusters, CutsGroupsWhereALaunchIsFull) {
  const auto graph = parse_graph(kFour);
  EXPECT_TRUE(run_pass("group_clusters", *graph, grouping(4)));  // two values each
  verify(*graph);
  EXPECT_EQ(count_of_kind(*graph, "clusters"), 2u);
  EXPECT_EQ(graph->nodes().size(), 2u);
}

TEST(GroupClusters, IsForDevicesThatAskForIt) {
  expect_untouched("group_clusters", kFour, grouping(0));
}

// Together they would make the cast of the weight, and all that is computed from it, work of every run.
TEST(GroupClusters, LeavesWhatIsComputedOnce) {
  PassContext context = grouping();
  context.options.frozen = true;
  expect_untouched("group_clusters",
                   R"(graph g(input %x: fp32[4], parameter %w: fp32[3], parameter %b: fp32[2]) {
    %x16 = cast(%x) {type = fp16}
    %w16 = cast(%w) {type = fp16}
    %b16 = cast(%b) {type = fp16}
    output x = %x16
    output w = %w16
    output b = %b16
  })",
                   context);
}

// As a cast for the end of the step, which would keep its result through all of it.
TEST(GroupClusters, LeavesWhatReadsImages) {
  expect_untouched("group_clusters",
                   R"(graph g(input %images: fp32[4], input %rate: fp32[], parameter %w: fp32[3]) {
    %x = cast(%images) {type = fp16}
    %y = exp(%images)
    output x = %x
    output y = %y
  })",
                   grouping());
}

TEST(GroupClusters, LeavesWhatBroadcastsMoreThanNumbers) {
  expect_untouched("group_clusters",
                   R"(graph g(input %a: fp32[4, 3], input %b: fp32[3], input %c: fp32[4, 3]) {
    %x = add(%a, %b)
    %y = reduce_sum(%c) {axes = [0]}
    output x = %x
    output y = %y
  })",
                   grouping());
}

TEST(GroupClusters, LeavesWhatNothingReads) {
  expect_untouched("group_clusters", R"(graph g(input %a: fp32[3, 3], parameter %p: fp32[3, 3]) {
    %unread = square(%p)
    %read = exp(%p)
    %c = matmul(%a, %read)
    output c = %c
  })",
                   grouping());
}

}  // namespace
}  // namespace tessera::testing
