// Losses of many rows, in parts.
#include "passes/pass_case.h"

namespace tessera::testing {
namespace {

// Of a device that likes at most four rows at a time.
PassContext fours() {
  PassContext context;
  context.target.logit_rows = [](const Node&) { return 4; };
  return context;
}

void expect_split(const std::string& before, const std::string& after) {
  expect_rewrite("split_logits", before.c_str(), after.c_str(), kFewRoundings, fours());
}
void expect_whole(const std::string& text) {
  expect_untouched("split_logits", text.c_str(), fours());
}

// A decoder's head in training, with padded columns and what is counted beside the loss. What the gradient
// begins with is made after the loss, and needs nothing of it.
TEST(SplitLogits, GoesFromTheProductToTheGradientsInParts) {
  const std::string inputs = R"(
    graph g(input %x: fp32[2, 3, 4], parameter %w: fp32[8, 4], parameter %b: fp32[8], input %labels: int32[2, 3],
      input %scale: fp32[6]) {)";
  const std::string outputs = R"(
    output loss = %loss
    output best = %best
    output dx = %dx
    output dw = %dw
    output db = %db
  })";
  expect_split(inputs + R"(
    %p = matmul(%x, %w) {transpose_b = true}
    %s = add(%p, %b)
    %logits = reshape(%s) {shape = [6, 8]}
    %flat_labels = reshape(%labels) {shape = [6]}
    %loss = cross_entropy(%logits, %flat_labels) {classes = 5, ignored_label = 1, smoothing = 0.1}
    %words = slice(%logits) {limits = [6, 5], starts = [0, 0], strides = [1, 1]}
    %best = argmax(%words)
    %dl = multiply(%scale, %scale)
    %d = cross_entropy_gradient(%logits, %flat_labels, %dl) {classes = 5, ignored_label = 1, smoothing = 0.1}
    %rows = reshape(%d) {shape = [2, 3, 8]}
    %dx = matmul(%rows, %w)
    %flat = reshape(%x) {shape = [6, 4]}
    %dw = matmul(%d, %flat) {transpose_a = true}
    %wide = cast(%rows) {type = fp64}
    %db = reduce_sum(%wide) {axes = [0, 1], keep_dimensions = true})" +
                   outputs,
               inputs + R"(
    %reshape = reshape(%x) {shape = [6, 4]}
    %slice = slice(%reshape) {limits = [4, 4], starts = [0, 0], strides = [1, 1]}
    %matmul = matmul(%slice, %w) {transpose_b = true}
    %add = add(%matmul, %b)
    %flat_labels = reshape(%labels) {shape = [6]}
    %slice_1 = slice(%flat_labels) {limits = [4], starts = [0], strides = [1]}
    %cross_entropy = cross_entropy(%add, %slice_1) {classes = 5, ignored_label = 1, smoothing = 0.1}
    %slice_2 = slice(%add) {limits = [4, 5], starts = [0, 0], strides = [1, 1]}
    %argmax = argmax(%slice_2) {axis = 1}
    %dl = multiply(%scale, %scale)
    %slice_3 = slice(%dl) {limits = [4], starts = [0], strides = [1]}
    %cross_entropy_gradient = cross_entropy_gradient(%add, %slice_1, %slice_3) {classes = 5, ignored_label = 1, smoothing = 0.1}
    %matmul_1 = matmul(%cross_entropy_gradient, %w)
    %flat = reshape(%x) {shape = [6, 4]}
    %slice_4 = slice(%flat) {limits = [4, 4], starts = [0, 0], strides = [1, 1]}
    %matmul_2 = matmul(%cross_entropy_gradient, %slice_4) {transpose_a = true}
    %cast = cast(%cross_entropy_gradient) {type = fp64}
    %reduce_sum = reduce_sum(%cast) {axes = [0], keep_dimensions = true}
    %slice_5 = slice(%reshape) {limits = [6, 4], starts = [4, 0], strides = [1, 1]}
    %matmul_3 = matmul(%slice_5, %w) {transpose_b = true}
    %add_1 = add(%matmul_3, %b)
    %slice_6 = slice(%flat_labels) {limits = [6], starts = [4], strides = [1]}
    %cross_entropy_1 = cross_entropy(%add_1, %slice_6) {classes = 5, ignored_label = 1, smoothing = 0.1}
    %slice_7 = slice(%add_1) {limits = [2, 5], starts = [0, 0], strides = [1, 1]}
    %argmax_1 = argmax(%slice_7) {axis = 1}
    %slice_8 = slice(%dl) {limits = [6], starts = [4], strides = [1]}
    %cross_entropy_gradient_1 = cross_entropy_gradient(%add_1, %slice_6, %slice_8) {classes = 5, ignored_label = 1, smoothing = 0.1}
    %matmul_4 = matmul(%cross_entropy_gradient_1, %w)
    %slice_9 = slice(%flat) {limits = [6, 4], starts = [4, 0], strides = [1, 1]}
    %matmul_5 = matmul(%cross_entropy_gradient_1, %slice_9) {transpose_a = true}
    %dw = add(%matmul_2, %matmul_5)
    %cast_1 = cast(%cross_entropy_gradient_1) {type = fp64}
    %reduce_sum_1 = reduce_sum(%cast_1) {axes = [0], keep_dimensions = true}
    %add_3 = add(%reduce_sum, %reduce_sum_1)
    %loss = concat(%cross_entropy, %cross_entropy_1) {axis = 0}
    %best = concat(%argmax, %argmax_1) {axis = 0}
    %concat_2 = concat(%matmul_1, %matmul_4) {axis = 0}
    %dx = reshape(%concat_2) {shape = [2, 3, 4]}
    %db = reshape(%add_3) {shape = [1, 1, 8]})" +
                   outputs);
}

std::string head(const std::string& rest) {
  return "graph g(input %x: fp32[6, 4], parameter %w: fp32[5, 4], input %labels: int32[6], input %dl: "
         "fp32[6], "
         "input %other: fp32[6, 5]) {\n  %p = matmul(%x, %w) {transpose_b = true}\n" +
         rest + "}";
}

TEST(SplitLogits, LeavesWhatNeedsAllRows) {
  const std::string loss = "  %loss = cross_entropy(%p, %labels)\n  output loss = %loss\n";
  const std::string gradient = loss + "  %d = cross_entropy_gradient(%p, %labels, %dl)\n";
  expect_whole(head(loss + "  output logits = %p\n"));
  expect_whole(head(loss + "  %y = argmax(%p) {axis = 0}\n  output y = %y\n"));
  expect_whole(head(loss + "  %y = add(%p, %other)\n  output y = %y\n"));
  expect_whole(head(
      loss + "  %y = slice(%p) {limits = [5, 5], starts = [1, 0], strides = [1, 1]}\n  output y = %y\n"));
  expect_whole(head(
      loss + "  %y = slice(%p) {limits = [6, 5], starts = [0, 1], strides = [1, 1]}\n  output y = %y\n"));
  expect_whole(head(gradient + "  output d = %d\n"));
  expect_whole(head(gradient + "  %y = reduce_sum(%d)\n  output y = %y\n"));
  expect_whole(head(gradient + "  %y = matmul(%d, %p) {transpose_b = true}\n  output y = %y\n"));
  expect_whole(
      head(gradient + "  %y = matmul(%w, %d) {transpose_a = true, transpose_b = true}\n  output y = %y\n"));
  // The losses of all rows say with what the gradient begins.
  expect_whole(head(loss + "  %m = reduce_max(%loss)\n  %far = divide(%loss, %m)\n"
                           "  %d = cross_entropy_gradient(%p, %labels, %far)\n  %dx = matmul(%d, %w)\n"
                           "  output dx = %dx\n"));
}

TEST(SplitLogits, LeavesFewRowsAndWhatHasNoLoss) {
  expect_whole(head("  %y = argmax(%p) {axis = 1}\n  output y = %y\n"));
  expect_whole(
      "graph g(input %x: fp32[4, 4], parameter %w: fp32[5, 4], input %labels: int32[4]) {"
      "%p = matmul(%x, %w) {transpose_b = true} %loss = cross_entropy(%p, %labels) output loss = %loss }");
  expect_untouched("split_logits",
                   head("  %loss = cross_entropy(%p, %labels)\n  output loss = %loss\n").c_str());
}

}  // namespace
}  // namespace tessera::testing
