// What ranks add up together, in buckets.
#include <gtest/gtest.h>

#include "tessera/compile/communicator.h"
#include "tessera/ops/functions.h"

#include "passes/pass_case.h"

namespace tessera::testing {
namespace {

PassContext buckets_of(int64_t bytes) {
  PassContext context;
  context.options.bucket_bytes = bytes;
  return context;
}

// Three products of 256 bytes, the last of the list the first that is made.
constexpr const char* kThree = R"(graph g(input %x: fp32[8, 8]) {
  %a = matmul(%x, %x)
  %b = matmul(%a, %x)
  %c = matmul(%b, %x)
  %of_c, %of_b, %of_a = all_reduce(%c, %b, %a) {ranks = $RANKS}
  output a = %of_a
  output b = %of_b
  output c = %of_c
})";

std::string three(int64_t ranks) {
  std::string text = kThree;
  return text.replace(text.find("$RANKS"), 6, std::to_string(ranks));
}

// The reference interpreter knows no other rank: of several it is compared by what one gives.
std::string rewritten(const std::string& text, const PassContext& context, bool changes) {
  const auto graph = parse_graph(text, "before");
  EXPECT_EQ(run_pass("bucket_reductions", *graph, context), changes);
  verify(*graph);
  return print(*graph);
}

std::string printed(const std::string& text) {
  return print(*parse_graph(text, "after"));
}

TEST(BucketReductions, TravelInTheOrderInWhichTheyAreMade) {
  EXPECT_EQ(rewritten(three(2), buckets_of(256), true), printed(R"(graph g(input %x: fp32[8, 8]) {
  %a = matmul(%x, %x)
  %b = matmul(%a, %x)
  %c = matmul(%b, %x)
  %all_reduce = all_reduce(%a) {ranks = 2}
  %all_reduce_1 = all_reduce(%b) {ranks = 2}
  %all_reduce_2 = all_reduce(%c) {ranks = 2}
  output a = %all_reduce
  output b = %all_reduce_1
  output c = %all_reduce_2
})"));
}

// What is scaled at the end of the graph is ready when the product is.
TEST(BucketReductions, LookAfterWhatIsLight) {
  EXPECT_EQ(rewritten(R"(graph g(input %x: fp32[8, 8]) {
  %a = matmul(%x, %x)
  %b = matmul(%a, %x)
  %small_b = negate(%b)
  %small_a = negate(%a)
  %of_b, %of_a = all_reduce(%small_b, %small_a) {ranks = 4, reduction = "mean"}
  output a = %of_a
  output b = %of_b
})",
                      buckets_of(256), true),
            printed(R"(graph g(input %x: fp32[8, 8]) {
  %a = matmul(%x, %x)
  %b = matmul(%a, %x)
  %small_b = negate(%b)
  %small_a = negate(%a)
  %all_reduce = all_reduce(%small_a) {ranks = 4, reduction = "mean"}
  %all_reduce_1 = all_reduce(%small_b) {ranks = 4, reduction = "mean"}
  output a = %all_reduce
  output b = %all_reduce_1
})"));
}

// Inputs of 1, 2, 3, ... bytes, in the order in which they are made, and how many go into each bucket.
std::vector<size_t> sizes_of_buckets(const std::vector<int64_t>& bytes, int64_t bucket_bytes) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::uint8, {1}});
  std::vector<Value*> inputs;
  for (const int64_t own : bytes) inputs.push_back(ops::broadcast_to(x, {own}));
  for (Value* sum : ops::all_reduce(inputs, {.ranks = 2})) graph.add_output(sum->name(), sum);
  run_pass("bucket_reductions", graph, buckets_of(bucket_bytes));
  std::vector<size_t> sizes;
  for (const auto& node : graph.nodes()) {
    if (node->operator_name() == "all_reduce") sizes.push_back(node->inputs().size());
  }
  return sizes;
}

TEST(BucketReductions, AreSmallAtBothEnds) {
  const std::vector<int64_t> ones(20, 1);
  EXPECT_EQ(sizes_of_buckets(ones, 8), (std::vector<size_t>{1, 2, 8, 8, 1}));
  EXPECT_EQ(sizes_of_buckets(ones, 16), (std::vector<size_t>{2, 16, 2}));
  // What is larger than a bucket has one of its own.
  EXPECT_EQ(sizes_of_buckets({1, 1, 50, 1, 1, 1}, 8), (std::vector<size_t>{1, 1, 1, 2, 1}));
  EXPECT_EQ(sizes_of_buckets({50, 1, 1}, 16), (std::vector<size_t>{1, 2}));
}

// Parts of 256 bytes, summed over two ranks, and their squares gathered.
TEST(BucketReductions, AreOfPartsToo) {
  EXPECT_EQ(rewritten(R"(graph g(input %x: fp32[8, 16]) {
  %a = exp(%x)
  %b = negate(%x)
  %part_a, %part_b = reduce_scatter(%a, %b) {ranks = 2}
  %next_a = square(%part_a)
  %next_b = square(%part_b)
  %all_a, %all_b = all_gather(%next_a, %next_b) {ranks = 2}
  output a = %all_a
  output b = %all_b
})",
                      buckets_of(512), true),
            printed(R"(graph g(input %x: fp32[8, 16]) {
  %a = exp(%x)
  %b = negate(%x)
  %reduce_scatter = reduce_scatter(%a) {ranks = 2}
  %reduce_scatter_1 = reduce_scatter(%b) {ranks = 2}
  %next_a = square(%reduce_scatter)
  %next_b = square(%reduce_scatter_1)
  %all_gather = all_gather(%next_a) {ranks = 2}
  %all_gather_1 = all_gather(%next_b) {ranks = 2}
  output a = %all_gather
  output b = %all_gather_1
})"));
}

TEST(BucketReductions, LeaveWhatIsSmallOrOfOneRank) {
  expect_untouched("bucket_reductions", three(1).c_str(), buckets_of(256));
  EXPECT_EQ(rewritten(three(2), buckets_of(1 << 20), false), printed(three(2)));
  EXPECT_EQ(rewritten(three(2), buckets_of(0), false), printed(three(2)));
  EXPECT_EQ(rewritten(three(2), {}, false), printed(three(2)));
}

TEST(BucketReductions, AreAsLargeAsTheDeviceLikesUnlessSomebodySays) {
  PassContext context;
  context.target.bucket_bytes = 256;
  rewritten(three(2), context, true);
  context.options.bucket_bytes = 0;
  rewritten(three(2), context, false);
}

}  // namespace
}  // namespace tessera::testing
