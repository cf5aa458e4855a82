// What ranks add up together, in one piece of memory.
#include <gtest/gtest.h>

#include "passes/pass_case.h"

namespace tessera::testing {
namespace {

PassContext aligned_to(int64_t alignment) {
  PassContext context;
  context.target.joined_reduction_alignment = alignment;
  return context;
}

// The reference interpreter knows no other rank: of several it is compared by what one gives.
void expect_joined(const char* before, const char* after) {
  const auto graph = parse_graph(before, "before");
  EXPECT_TRUE(run_pass("join_reductions", *graph, aligned_to(16)));
  verify(*graph);
  EXPECT_EQ(print(*graph), print(*parse_graph(after, "after")));
}

TEST(JoinReductions, GivesEachAPlaceThatFitsAndCopiesSmallOthersToTheLast) {
  expect_joined(R"(graph g(input %a: fp32[2, 2], input %b: fp32[3], input %c: fp32[5], input %d: fp32[8]) {
  %p, %q, %r, %s = all_reduce(%a, %b, %c, %d) {ranks = 2, reduction = "mean"}
  %x = negate(%p)
  %y = negate(%q)
  %z = negate(%r)
  %w = negate(%s)
  output x = %x
  output y = %y
  output z = %z
  output w = %w
})",
                R"(graph g(input %a: fp32[2, 2], input %b: fp32[3], input %c: fp32[5], input %d: fp32[8]) {
  %reshape = reshape(%a) {shape = [4]}
  %concat = concat(%b, %c) {axis = 0}
  %concat_1 = concat(%reshape, %d, %concat) {axis = 0}
  %all_reduce = all_reduce(%concat_1) {ranks = 2, reduction = "mean"}
  %split, %split.1, %split.2 = split(%all_reduce) {axis = 0, sizes = [4, 8, 8]}
  %reshape_1 = reshape(%split) {shape = [2, 2]}
  %split_1, %split_1.1 = split(%split.2) {axis = 0, sizes = [3, 5]}
  %x = negate(%reshape_1)
  %y = negate(%split_1)
  %z = negate(%split_1.1)
  %w = negate(%split.1)
  output x = %x
  output y = %y
  output z = %z
  output w = %w
})");
}

// Each type has a whole of its own, all of which travel together.
TEST(JoinReductions, KeepsTypesApart) {
  expect_joined(R"(graph g(input %a: fp32[4], input %b: fp16[8], input %c: fp32[8], input %d: fp16[16]) {
  %p, %q, %r, %s = all_reduce(%a, %b, %c, %d) {ranks = 2}
  %x = negate(%p)
  %y = negate(%q)
  %z = negate(%r)
  %w = negate(%s)
  output x = %x
  output y = %y
  output z = %z
  output w = %w
})",
                R"(graph g(input %a: fp32[4], input %b: fp16[8], input %c: fp32[8], input %d: fp16[16]) {
  %concat = concat(%a, %c) {axis = 0}
  %concat_1 = concat(%b, %d) {axis = 0}
  %all_reduce, %all_reduce.1 = all_reduce(%concat, %concat_1) {ranks = 2}
  %split, %split.1 = split(%all_reduce) {axis = 0, sizes = [4, 8]}
  %split_1, %split_1.1 = split(%all_reduce.1) {axis = 0, sizes = [8, 16]}
  %x = negate(%split)
  %y = negate(%split_1)
  %z = negate(%split.1)
  %w = negate(%split_1.1)
  output x = %x
  output y = %y
  output z = %z
  output w = %w
})");
}

// Scalars that are read are copied into a value and out of it: cheaper than two pieces.
TEST(JoinReductions, CopiesSmallResultsToo) {
  expect_joined(R"(graph g(input %a: fp32[], input %b: fp32[]) {
  %p, %q = all_reduce(%a, %b) {ranks = 2}
  output x = %p
  output y = %q
})",
                R"(graph g(input %a: fp32[], input %b: fp32[]) {
  %reshape = reshape(%a) {shape = [1]}
  %reshape_1 = reshape(%b) {shape = [1]}
  %concat = concat(%reshape, %reshape_1) {axis = 0}
  %all_reduce = all_reduce(%concat) {ranks = 2}
  %split, %split.1 = split(%all_reduce) {axis = 0, sizes = [1, 1]}
  %reshape_2 = reshape(%split) {shape = []}
  %reshape_3 = reshape(%split.1) {shape = []}
  output x = %reshape_2
  output y = %reshape_3
})");
}

// Of a large one that does not fit a copy would take longer than a piece of its own.
TEST(JoinReductions, GivesALargeOtherThePlaceAtTheEnd) {
  const auto graph = parse_graph(R"(graph g(input %a: fp32[16385], input %b: fp32[16387], input %c: fp32[8]) {
  %p, %q, %r = all_reduce(%a, %b, %c) {ranks = 2}
  %x = negate(%p)
  %y = negate(%q)
  %z = negate(%r)
  output x = %x
  output y = %y
  output z = %z
})",
                                 "before");
  EXPECT_TRUE(run_pass("join_reductions", *graph, aligned_to(16)));
  verify(*graph);
  for (const auto& node : graph->nodes()) {
    if (node->operator_name() != "all_reduce") continue;
    ASSERT_EQ(node->inputs().size(), 2U);
    EXPECT_EQ(node->input(0)->type().element_count(), 8 + 16387);
    EXPECT_EQ(node->input(1)->type().element_count(), 16385);
  }
}

// A variable is written to its own memory: as a part of something else it would have to be copied.
TEST(JoinReductions, LeavesWhatAVariableBecomesAndWhatIsOfOneRank) {
  constexpr const char* kOfUpdates = R"(graph g(state %a: fp32[4], state %b: fp32[8]) {
  %p, %q = all_reduce(%a, %b) {ranks = 2}
  update %a = %p
  update %b = %q
})";
  constexpr const char* kOfOneRank = R"(graph g(input %a: fp32[4], input %b: fp32[8]) {
  %p, %q = all_reduce(%a, %b) {ranks = 1}
  %x = add(%p, %p)
  %y = add(%q, %q)
  output x = %x
  output y = %y
})";
  for (const char* text : {kOfUpdates, kOfOneRank}) {
    const auto graph = parse_graph(text, "before");
    EXPECT_FALSE(run_pass("join_reductions", *graph, aligned_to(16)));
    EXPECT_EQ(print(*graph), print(*parse_graph(text, "before")));
  }
}

TEST(JoinReductions, LeavesAllWhereTheDeviceExchangesPartsAsFast) {
  const auto graph = parse_graph(R"(graph g(input %a: fp32[4], input %b: fp32[8]) {
  %p, %q = all_reduce(%a, %b) {ranks = 2}
  %x = negate(%p)
  %y = negate(%q)
  output x = %x
  output y = %y
})",
                                 "before");
  EXPECT_FALSE(run_pass("join_reductions", *graph, {}));
}

}  // namespace
}  // namespace tessera::testing
