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

TEST(JoinReductions, GivesEachAPlaceThatFitsAndTheLargestOtherTheLast) {
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
  %concat = concat(%reshape, %d, %c) {axis = 0}
  %all_reduce, %all_reduce.1 = all_reduce(%concat, %b) {ranks = 2, reduction = "mean"}
  %split, %split.1, %split.2 = split(%all_reduce) {axis = 0, sizes = [4, 8, 5]}
  %reshape_1 = reshape(%split) {shape = [2, 2]}
  %x = negate(%reshape_1)
  %y = negate(%all_reduce.1)
  %z = negate(%split.2)
  %w = negate(%split.1)
  output x = %x
  output y = %y
  output z = %z
  output w = %w
})");
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
