#include <algorithm>

#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

const char* const kPass = "recognize_look_ups";

// Five indices, some of which name none of four rows, and what makes rows %h of them.
std::string graph_of(const std::string& lines) {
  return "graph g(input %given: int32[5, 1], input %flat: int32[5], input %table: fp32[4, 3], input %more: "
         "fp32[5, 4]) {\n"
         "  %zero = constant() {value = int32[5, 1] (0, 3, -2, 5, 2)} %i = add(%zero, %given)\n"
         "  %count = constant() {value = int32[1, 4] (0, 1, 2, 3)}\n" +
         lines + "\n  output y = %y\n}";
}

const std::string kRows = "%e = equal(%i, %count) %h = cast(%e) {type = fp32} ";

bool has(const Graph& graph, std::string_view operator_name) {
  return std::ranges::any_of(graph.nodes(),
                             [&](const auto& node) { return node->operator_name() == operator_name; });
}

void expect_look_up(const std::string& lines) {
  const std::unique_ptr<Graph> before = parse_graph(graph_of(lines));
  const std::unique_ptr<Graph> after = parse_graph(graph_of(lines));
  EXPECT_TRUE(run_pass(*after, kPass)) << lines;
  verify(*after);
  run_pass(*after, "remove_dead_code");
  EXPECT_TRUE(has(*after, "gather")) << print(*after);
  EXPECT_FALSE(has(*after, "matmul")) << print(*after);
  expect_same_results(*before, *after, kSameBits);
}

TEST(RecognizeLookUps, OnEitherSideOfEqual) {
  expect_look_up(kRows + "%y = matmul(%h, %table)");
  expect_look_up("%e = equal(%count, %i) %h = cast(%e) {type = fp32} %y = matmul(%h, %table)");
}

TEST(RecognizeLookUps, LeaveOtherProducts) {
  const auto expect_left = [](const std::string& lines) {
    const std::unique_ptr<Graph> graph = parse_graph(graph_of(lines));
    EXPECT_FALSE(run_pass(*graph, kPass)) << lines;
  };
  expect_left("%y = matmul(%more, %table)");
  // The rows are read by another node, too.
  expect_left(kRows + "%p = matmul(%h, %table) %s = reduce_sum(%h) {axes = [0, 1]} %y = add(%p, %s)");
  // Columns do not count from 0 on.
  expect_left(
      "%odd = constant() {value = int32[1, 4] (0, 2, 1, 3)} %e = equal(%i, %odd) %h = cast(%e) {type = fp32} "
      "%y = matmul(%h, %table)");
  // Each index is compared with one number.
  expect_left(
      "%one = constant() {value = int32[5, 4] (0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3)} "
      "%w = reshape(%flat) {shape = [5, 1]} %e = equal(%w, %one) %h = cast(%e) {type = fp32} %y = matmul(%h, "
      "%table)");
}

}  // namespace
}  // namespace tessera::testing
