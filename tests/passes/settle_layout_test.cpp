#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

// Channels-first x -> [transposes around convolution, batch norm and pooling] -> channels-first y.
TEST(SettleLayout, LeavesNoTransposeInAChannelsFirstBlock) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[2, 6, 6, 3], parameter %w: fp32[4, 3, 3, 3], parameter %v: fp32[4, 1, 1, 3],
            parameter %scale: fp32[4], parameter %bias: fp32[4], parameter %offset: fp32[4, 1, 1]) {
      %c = convolution(%x, %w) {strides = [1, 1], padding_low = [1, 1], padding_high = [1, 1], dilations = [1, 1]}
      %c.first = transpose(%c) {permutation = [0, 3, 1, 2]}
      %c.shifted = add(%c.first, %offset)
      %c.last = transpose(%c.shifted) {permutation = [0, 2, 3, 1]}
      %n, %mean, %variance = batch_norm_training(%c.last, %scale, %bias)
      %n.first = transpose(%n) {permutation = [0, 3, 1, 2]}
      %r = relu(%n.first)
      %s = convolution(%x, %v) {strides = [1, 1], padding_low = [0, 0], padding_high = [0, 0], dilations = [1, 1]}
      %s.first = transpose(%s) {permutation = [0, 3, 1, 2]}
      %sum = add(%r, %s.first)
      %sum.last = transpose(%sum) {permutation = [0, 2, 3, 1]}
      %p = average_pool(%sum.last) {window = [2, 2], strides = [2, 2], padding_low = [0, 0], padding_high = [0, 0]}
      %p.first = transpose(%p) {permutation = [0, 3, 1, 2]}
      %y = reduce_mean(%p.first) {axes = [2, 3]}
      output y = %y
    })",
              R"(
    graph g(input %x: fp32[2, 6, 6, 3], parameter %w: fp32[4, 3, 3, 3], parameter %v: fp32[4, 1, 1, 3],
            parameter %scale: fp32[4], parameter %bias: fp32[4], parameter %offset: fp32[4, 1, 1]) {
      %c = convolution(%x, %w) {strides = [1, 1], padding_low = [1, 1], padding_high = [1, 1], dilations = [1, 1]}
      %reshape: fp32[4] = reshape(%offset) {shape = [4]}
      %c.shifted = add(%c, %reshape)
      %n, %mean, %variance = batch_norm_training(%c.shifted, %scale, %bias)
      %r = relu(%n)
      %s = convolution(%x, %v) {strides = [1, 1], padding_low = [0, 0], padding_high = [0, 0], dilations = [1, 1]}
      %sum = add(%r, %s)
      %p = average_pool(%sum) {window = [2, 2], strides = [2, 2], padding_low = [0, 0], padding_high = [0, 0]}
      %y = reduce_mean(%p) {axes = [1, 2]}
      output y = %y
    })");
}

TEST(SettleLayout, MergesWhatMeetsDirectly) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[2, 3, 4, 5], input %z: fp32[2, 1, 1, 5]) {
      %a = transpose(%x) {permutation = [0, 3, 1, 2]}
      %b = transpose(%a) {permutation = [0, 2, 3, 1]}
      %c = transpose(%x) {permutation = [0, 1, 2, 3]}
      %d = transpose(%a) {permutation = [0, 1, 3, 2]}
      %e = transpose(%z) {permutation = [0, 3, 1, 2]}
      output b = %b
      output c = %c
      output d = %d
      output e = %e
    })",
              R"(
    graph g(input %x: fp32[2, 3, 4, 5], input %z: fp32[2, 1, 1, 5]) {
      %transpose = transpose(%x) {permutation = [0, 3, 2, 1]}
      %reshape = reshape(%z) {shape = [2, 5, 1, 1]}
      output b = %x
      output c = %x
      output d = %transpose
      output e = %reshape
    })");
}

TEST(SettleLayout, RemapsTheAxesOfMovement) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[2, 4, 6, 3], input %z: fp32[2, 4, 6, 5]) {
      %x.first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %z.first = transpose(%z) {permutation = [0, 3, 1, 2]}
      %both = concat(%x.first, %z.first) {axis = 1}
      %part, %rest = split(%both) {sizes = [6, 2], axis = -3}
      %cut = slice(%part) {starts = [0, 1, 0, 2], limits = [2, 6, 3, -1], strides = [1, 2, 1, 1]}
      %wide = pad(%cut) {low = [0, 0, 1, 2], high = [0, 1, 0, 0], interior = [0, 0, 0, 1], value = 0.5}
      %clipped = clip(%wide) {low = -1, high = 1}
      %small = cast(%clipped) {type = fp16}
      %y = transpose(%small) {permutation = [0, 2, 3, 1]}
      %rest.last = transpose(%rest) {permutation = [0, 2, 3, 1]}
      output y = %y
      output rest = %rest.last
    })",
              R"(
    graph g(input %x: fp32[2, 4, 6, 3], input %z: fp32[2, 4, 6, 5]) {
      %both = concat(%x, %z) {axis = 3}
      %part, %rest = split(%both) {sizes = [6, 2], axis = 3}
      %cut = slice(%part) {starts = [0, 0, 2, 1], limits = [2, 3, -1, 6], strides = [1, 1, 1, 2]}
      %wide = pad(%cut) {low = [0, 1, 2, 0], high = [0, 0, 0, 1], interior = [0, 0, 1, 0], value = 0.5}
      %clipped = clip(%wide) {low = -1, high = 1}
      %small = cast(%clipped) {type = fp16}
      output y = %small
      output rest = %rest
    })");
}

TEST(SettleLayout, RemapsReducedAxes) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[2, 4, 6, 3]) {
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %p = softmax(%first) {axis = 1}
      %mean = reduce_mean(%p) {axes = [-2, -1], keep_dimensions = true}
      %centered = subtract(%p, %mean)
      %y = transpose(%centered) {permutation = [0, 2, 3, 1]}
      %total = reduce_sum(%centered)
      %rows = reduce_max(%centered) {axes = [0, 3]}
      %best = argmax(%first) {axis = 1}
      output y = %y
      output total = %total
      output rows = %rows
      output best = %best
    })",
              R"(
    graph g(input %x: fp32[2, 4, 6, 3]) {
      %p = softmax(%x) {axis = 3}
      %mean = reduce_mean(%p) {axes = [1, 2], keep_dimensions = true}
      %centered = subtract(%p, %mean)
      %total = reduce_sum(%centered)
      %rows = reduce_max(%centered) {axes = [0, 2]}
      %transpose_2 = transpose(%rows) {permutation = [1, 0]}
      %best = argmax(%x) {axis = 3}
      output y = %centered
      output total = %total
      output rows = %transpose_2
      output best = %best
    })");
}

// The gradient of a relu and of a bias that were written channels-first.
TEST(SettleLayout, MovesThroughMasksAndSumsOfGradients) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[2, 4, 4, 3], input %dy: fp32[2, 2, 2, 3]) {
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %r = relu(%first)
      %dp = average_pool_gradient(%dy) {input_shape = [2, 4, 4, 3], count_padding = true, window = [2, 2], strides = [2, 2], padding_low = [0, 0], padding_high = [0, 0]}
      %dp.first = transpose(%dp) {permutation = [0, 3, 1, 2]}
      %zero = constant() {value = fp32[] (0)}
      %open = greater(%r, %zero)
      %dr = select(%open, %dp.first, %zero)
      %db = reduce_sum(%dr) {axes = [0, 2, 3]}
      %dx = transpose(%dr) {permutation = [0, 2, 3, 1]}
      output dx = %dx
      output db = %db
    })",
              R"(
    graph g(input %x: fp32[2, 4, 4, 3], input %dy: fp32[2, 2, 2, 3]) {
      %r = relu(%x)
      %dp = average_pool_gradient(%dy) {input_shape = [2, 4, 4, 3], count_padding = true, window = [2, 2], strides = [2, 2], padding_low = [0, 0], padding_high = [0, 0]}
      %zero = constant() {value = fp32[] (0)}
      %open = greater(%r, %zero)
      %dr = select(%open, %dp, %zero)
      %db = reduce_sum(%dr) {axes = [0, 1, 2]}
      output dx = %dr
      output db = %db
    })");
}

// One transpose of %z instead of two of what surrounds the sum.
// As a resizing to the nearest pixels is written: rows, then columns.
TEST(SettleLayout, MovesThroughGathersAlongAnAxis) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[2, 2, 3, 4]) {
      %rows: int64[4] = constant() {value = int64[4] (0, 0, 1, 1)}
      %columns: int64[6] = constant() {value = int64[6] (0, 0, 1, 1, 2, 2)}
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %tall = gather(%first, %rows) {axis = 2}
      %wide = gather(%tall, %columns) {axis = -1}
      %y = transpose(%wide) {permutation = [0, 2, 3, 1]}
      output y = %y
    })",
              R"(
    graph g(input %x: fp32[2, 2, 3, 4]) {
      %rows: int64[4] = constant() {value = int64[4] (0, 0, 1, 1)}
      %columns: int64[6] = constant() {value = int64[6] (0, 0, 1, 1, 2, 2)}
      %tall = gather(%x, %rows) {axis = 1}
      %wide = gather(%tall, %columns) {axis = 2}
      output y = %wide
    })");
}

TEST(SettleLayout, TransposesTheOtherSideWhereThatIsCheaper) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[2, 4, 4, 3], input %z: fp32[2, 3, 4, 4]) {
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %sum = add(%first, %z)
      %y = transpose(%sum) {permutation = [0, 2, 3, 1]}
      output y = %y
    })",
              R"(
    graph g(input %x: fp32[2, 4, 4, 3], input %z: fp32[2, 3, 4, 4]) {
      %transpose: fp32[2, 4, 4, 3] = transpose(%z) {permutation = [0, 2, 3, 1]}
      %sum = add(%x, %transpose)
      output y = %sum
    })");
}

// An output wanted channels-first keeps one transpose, beside the pair that goes.
TEST(SettleLayout, TransposesOnceForAnOutput) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[2, 4, 4, 3]) {
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %r = relu(%first)
      %y = transpose(%r) {permutation = [0, 2, 3, 1]}
      output r = %r
      output y = %y
    })",
              R"(
    graph g(input %x: fp32[2, 4, 4, 3]) {
      %r = relu(%x)
      %transpose = transpose(%r) {permutation = [0, 3, 1, 2]}
      output r = %transpose
      output y = %r
    })");
}

// A permutation that is its own inverse leads both ways.
TEST(SettleLayout, SettlesSwapsOfAxesByTurns) {
  expect_pass("settle_layout", R"(
    graph g(input %x: fp32[3, 4]) {
      %a = exp(%x)
      %b = transpose(%a) {permutation = [1, 0]}
      %c = relu(%b)
      %d = transpose(%c) {permutation = [1, 0]}
      %y = tanh(%d)
      output y = %y
    })",
              R"(
    graph g(input %x: fp32[3, 4]) {
      %a = exp(%x)
      %c = relu(%a)
      %y = tanh(%c)
      output y = %y
    })");
}

TEST(SettleLayout, KeepsATransposeThatMeetsNone) {
  expect_no_change("settle_layout", R"(
    graph g(input %x: fp32[2, 4, 4, 3]) {
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %y = relu(%first)
      output y = %y
    })");
}

TEST(SettleLayout, KeepsOtherPermutationsThatMeet) {
  expect_no_change("settle_layout", R"(
    graph g(input %x: fp32[2, 3, 3, 3], input %z: fp32[2, 3, 3, 3]) {
      %a = transpose(%x) {permutation = [0, 3, 1, 2]}
      %b = transpose(%z) {permutation = [0, 1, 3, 2]}
      %y = add(%a, %b)
      output y = %y
    })");
}

// `work` reads %first, between a transpose and the one that takes it back.
void expect_pair_kept(const std::string& inputs, const std::string& work) {
  expect_no_change("settle_layout", "graph g(" + inputs + R"() {
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %last = )" + work + R"(
      %y = transpose(%last) {permutation = [0, 2, 3, 1]}
      output y = %y
    })");
}

TEST(SettleLayout, KeepsPairsAroundAReshape) {
  expect_pair_kept("input %x: fp32[2, 4, 4, 4]", "reshape(%first) {shape = [2, 2, 8, 4]}");
}

// Which elements are dropped depends on their place in memory.
TEST(SettleLayout, KeepsPairsAroundDropout) {
  expect_pair_kept("input %x: fp32[2, 4, 4, 3], input %counter: int64[2]",
                   "dropout(%first, %counter) {rate = 0.5, stream = 1}");
}

// Batch normalization over the axis that is last here, which is not the channels' elsewhere.
TEST(SettleLayout, KeepsPairsAroundBatchNorm) {
  expect_pair_kept(R"(input %x: fp32[2, 4, 5, 3], input %scale: fp32[5], input %bias: fp32[5],
                      input %mean: fp32[5], input %variance: fp32[5])",
                   "batch_norm_inference(%first, %scale, %bias, %mean, %variance)");
}

// Indices that are no list make two axes of one.
TEST(SettleLayout, KeepsPairsAroundAGatherOfMatrices) {
  expect_no_change("settle_layout", R"(
    graph g(input %x: fp32[2, 4, 5, 3], input %indices: int64[2, 2]) {
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %y = gather(%first, %indices) {axis = 2}
      output y = %y
    })");
}

TEST(SettleLayout, KeepsAMoveThatWouldCostMore) {
  expect_no_change("settle_layout", R"(
    graph g(input %x: fp32[2, 1, 4, 3], input %a: fp32[2, 3, 4, 4]) {
      %first = transpose(%x) {permutation = [0, 3, 1, 2]}
      %y = add(%first, %a)
      output y = %y
    })");
}

TEST(SettleLayout, LeavesTransposedWeightsToTheOnceOfAFrozenGraph) {
  expect_no_change("settle_layout", R"(
    graph g(input %x: fp32[2, 4, 4, 3], parameter %w: fp32[5, 3, 3, 3]) {
      %scaled = square(%w)
      %last = transpose(%scaled) {permutation = [0, 2, 3, 1]}
      %y = convolution(%x, %last) {strides = [1, 1], padding_low = [1, 1], padding_high = [1, 1], dilations = [1, 1]}
      output y = %y
    })",
                   {.options = {.frozen = true}});
}

}  // namespace
}  // namespace tessera::testing
