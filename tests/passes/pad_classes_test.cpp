// Logits of more columns than there are classes.
#include "tessera/base/rounding.h"

#include "passes/pass_case.h"

namespace tessera::testing {
namespace {

// Of a device that likes multiples of eight columns.
PassContext eights() {
  PassContext context;
  context.target.padded_columns = [](const Node& product) {
    return round_up(product.output()->type().static_shape().back(), 8);
  };
  return context;
}

void expect_padded(const std::string& before, const std::string& after) {
  expect_rewrite("pad_classes", before.c_str(), after.c_str(), kFewRoundings, eights());
}
void expect_kept(const std::string& text) {
  expect_untouched("pad_classes", text.c_str(), eights());
}

// A decoder's head in training, with what is counted beside the loss.
TEST(PadClasses, KeepsTheLongerRowsFromTheProductToTheGradients) {
  const std::string inputs = R"(
    graph g(input %x: fp32[2, 3, 4], parameter %w: fp32[5, 4], parameter %b: fp32[5], input %labels: int32[6],
      input %dl: fp32[6]) {)";
  const std::string outputs = R"(
    output loss = %loss
    output best = %best
    output dx = %dx
    output dw = %dw
    output db = %db
  })";
  expect_padded(inputs + R"(
    %p = matmul(%x, %w) {transpose_b = true}
    %s = add(%p, %b)
    %logits = reshape(%s) {shape = [6, 5]}
    %loss = cross_entropy(%logits, %labels) {ignored_label = 1, smoothing = 0.1}
    %best = argmax(%logits) {axis = 1}
    %d = cross_entropy_gradient(%logits, %labels, %dl) {ignored_label = 1, smoothing = 0.1}
    %rows = reshape(%d) {shape = [2, 3, 5]}
    %dx = matmul(%rows, %w)
    %flat = reshape(%x) {shape = [6, 4]}
    %dw = matmul(%d, %flat) {transpose_a = true}
    %wide = cast(%d) {type = fp64}
    %db = reduce_sum(%wide) {axes = [0]})" +
                    outputs,
                inputs + R"(
    %pad = pad(%w) {high = [3, 0], interior = [0, 0], low = [0, 0]}
    %p = matmul(%x, %pad) {transpose_b = true}
    %pad_1 = pad(%b) {high = [3], interior = [0], low = [0]}
    %s = add(%p, %pad_1)
    %logits = reshape(%s) {shape = [6, 8]}
    %loss = cross_entropy(%logits, %labels) {classes = 5, ignored_label = 1, smoothing = 0.1}
    %slice = slice(%logits) {limits = [6, 5], starts = [0, 0], strides = [1, 1]}
    %best = argmax(%slice) {axis = 1}
    %d = cross_entropy_gradient(%logits, %labels, %dl) {classes = 5, ignored_label = 1, smoothing = 0.1}
    %rows = reshape(%d) {shape = [2, 3, 8]}
    %dx = matmul(%rows, %pad)
    %flat = reshape(%x) {shape = [6, 4]}
    %dw = matmul(%d, %flat) {transpose_a = true}
    %slice_1 = slice(%dw) {limits = [5, 4], starts = [0, 0], strides = [1, 1]}
    %wide = cast(%d) {type = fp64}
    %db = reduce_sum(%wide) {axes = [0]}
    %slice_2 = slice(%db) {limits = [5], starts = [0], strides = [1]}
    output loss = %loss
    output best = %best
    output dx = %dx
    output dw = %slice_1
    output db = %slice_2
  })");
}

// Whose classes are columns, as Dense has them.
TEST(PadClasses, PadsColumnsOfAWeight) {
  const std::string inputs = R"(
    graph g(input %x: fp32[6, 4], parameter %w: fp32[4, 5], input %labels: int64[6], input %dl: fp32[6]) {)";
  expect_padded(inputs + R"(
    %p = matmul(%x, %w)
    %loss = cross_entropy(%p, %labels)
    %d = cross_entropy_gradient(%p, %labels, %dl)
    %dx = matmul(%d, %w) {transpose_b = true}
    %dw = matmul(%x, %d) {transpose_a = true}
    %dx_transposed = matmul(%w, %d) {transpose_b = true}
    output loss = %loss
    output dx = %dx
    output dw = %dw
    output dx_transposed = %dx_transposed
  })",
                inputs + R"(
    %pad = pad(%w) {high = [0, 3], interior = [0, 0], low = [0, 0]}
    %p = matmul(%x, %pad)
    %loss = cross_entropy(%p, %labels) {classes = 5}
    %d = cross_entropy_gradient(%p, %labels, %dl) {classes = 5}
    %dx = matmul(%d, %pad) {transpose_b = true}
    %dw = matmul(%x, %d) {transpose_a = true}
    %slice = slice(%dw) {limits = [4, 5], starts = [0, 0], strides = [1, 1]}
    %dx_transposed = matmul(%pad, %d) {transpose_b = true}
    output loss = %loss
    output dx = %dx
    output dw = %slice
    output dx_transposed = %dx_transposed
  })");
}

std::string head(const std::string& rest, const std::string& classes = "5") {
  return "graph g(input %x: fp32[6, 4], parameter %w: fp32[" + classes +
         ", 4], input %labels: int32[6], input %dl: fp32[6], input %other: fp32[" + classes +
         ", 4]) {\n  %p = matmul(%x, %w) {transpose_b = true}\n" + rest + "}";
}

TEST(PadClasses, LeavesWhatNeedsTheExactColumns) {
  const std::string loss = "  %loss = cross_entropy(%p, %labels)\n  output loss = %loss\n";
  const std::string gradient = loss + "  %d = cross_entropy_gradient(%p, %labels, %dl)\n";
  expect_kept(head(loss + "  output logits = %p\n"));
  expect_kept(head(loss + "  %y = softmax(%p)\n  output y = %y\n"));
  expect_kept(head(loss + "  %y = argmax(%p) {axis = 0}\n  output y = %y\n"));
  expect_kept(head(loss + "  %y = add(%p, %p)\n  output y = %y\n"));
  expect_kept(head(gradient + "  output d = %d\n"));
  expect_kept(head(gradient + "  %y = reduce_sum(%d) {axes = [1]}\n  output y = %y\n"));
  expect_kept(head(gradient + "  %y = reshape(%d) {shape = [30]}\n  output y = %y\n"));
  // By a matrix that has no zeros there.
  expect_kept(head(gradient + "  %y = matmul(%d, %other)\n  output y = %y\n"));
  // Both of whose operands have the columns.
  expect_kept(head(gradient + "  %y = matmul(%d, %p) {transpose_b = true}\n  output y = %y\n"));
}

TEST(PadClasses, LeavesWhatTheDeviceLikesAndWhatHasNoLoss) {
  expect_kept(head("  %loss = cross_entropy(%p, %labels)\n  output loss = %loss\n", "8"));
  expect_kept(head("  %y = argmax(%p) {axis = 1}\n  output y = %y\n"));
  expect_kept(head("  %loss = cross_entropy(%p, %labels) {classes = 3}\n  output loss = %loss\n"));
  // By its square, whose other axis is as long.
  expect_kept(
      "graph g(input %x: fp32[6, 5], parameter %w: fp32[5, 5], input %labels: int32[6], input %dl: fp32[6]) {"
      "%p = matmul(%x, %w) %loss = cross_entropy(%p, %labels) %d = cross_entropy_gradient(%p, %labels, %dl) "
      "%y = matmul(%d, %w) output loss = %loss output y = %y }");
  expect_untouched("pad_classes",
                   head("  %loss = cross_entropy(%p, %labels)\n  output loss = %loss\n").c_str());
}

}  // namespace
}  // namespace tessera::testing
