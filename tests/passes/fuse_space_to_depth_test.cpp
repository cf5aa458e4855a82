#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

constexpr PassOptions kOn{.space_to_depth = true};
constexpr const char* kPass = "fuse_space_to_depth";

TEST(FuseSpaceToDepth, TakesTheCastWithThePadding) {
  expect_pass(kPass, R"(
    graph g(input %x: fp32[2, 5, 6, 3]) {
      %cast = cast(%x) {type = fp16}
      %pad = pad(%cast) {low = [0, 1, 0, 0], high = [0, 0, 2, 1], interior = [0, 0, 0, 0]}
      %split = reshape(%pad) {shape = [2, 3, 2, 2, 4, 4]}
      %swapped = transpose(%split) {permutation = [0, 1, 3, 2, 4, 5]}
      %y = reshape(%swapped) {shape = [2, 3, 2, 32]}
      output y = %y
    })",
              R"(
    graph g(input %x: fp32[2, 5, 6, 3]) {
      %y = fused(%x) {kind = "space_to_depth"} body graph space_to_depth(input %x: fp32[2, 5, 6, 3]) {
        %cast = cast(%x) {type = fp16}
        %pad = pad(%cast) {low = [0, 1, 0, 0], high = [0, 0, 2, 1], interior = [0, 0, 0, 0]}
        %split = reshape(%pad) {shape = [2, 3, 2, 2, 4, 4]}
        %swapped = transpose(%split) {permutation = [0, 1, 3, 2, 4, 5]}
        %y = reshape(%swapped) {shape = [2, 3, 2, 32]}
        output y0 = %y
      }
      output y = %y
    })",
              kOn);
}

TEST(FuseSpaceToDepth, LeavesOutACastThatIsReadTwice) {
  expect_pass(kPass, R"(
    graph g(input %x: fp32[1, 4, 4, 2]) {
      %cast = cast(%x) {type = fp16}
      %pad = pad(%cast) {low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0]}
      %split = reshape(%pad) {shape = [1, 2, 2, 2, 2, 2]}
      %swapped = transpose(%split) {permutation = [0, 1, 3, 2, 4, 5]}
      %y = reshape(%swapped) {shape = [1, 2, 2, 8]}
      output y = %y
      output cast = %cast
    })",
              R"(
    graph g(input %x: fp32[1, 4, 4, 2]) {
      %cast = cast(%x) {type = fp16}
      %y = fused(%cast) {kind = "space_to_depth"} body graph space_to_depth(input %cast: fp16[1, 4, 4, 2]) {
        %pad = pad(%cast) {low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0]}
        %split = reshape(%pad) {shape = [1, 2, 2, 2, 2, 2]}
        %swapped = transpose(%split) {permutation = [0, 1, 3, 2, 4, 5]}
        %y = reshape(%swapped) {shape = [1, 2, 2, 8]}
        output y0 = %y
      }
      output y = %y
      output cast = %cast
    })",
              kOn);
}

TEST(FuseSpaceToDepth, TakesTheWayBack) {
  expect_pass(kPass, R"(
    graph g(input %x: fp16[2, 3, 2, 16]) {
      %split = reshape(%x) {shape = [2, 3, 2, 2, 4, 2]}
      %swapped = transpose(%split) {permutation = [0, 1, 3, 2, 4, 5]}
      %whole = reshape(%swapped) {shape = [2, 6, 8, 2]}
      %y = slice(%whole) {starts = [0, 0, 0, 0], limits = [2, 5, 7, 1], strides = [1, 1, 1, 1]}
      output y = %y
    })",
              R"(
    graph g(input %x: fp16[2, 3, 2, 16]) {
      %y = fused(%x) {kind = "depth_to_space"} body graph depth_to_space(input %x: fp16[2, 3, 2, 16]) {
        %split = reshape(%x) {shape = [2, 3, 2, 2, 4, 2]}
        %swapped = transpose(%split) {permutation = [0, 1, 3, 2, 4, 5]}
        %whole = reshape(%swapped) {shape = [2, 6, 8, 2]}
        %y = slice(%whole) {starts = [0, 0, 0, 0], limits = [2, 5, 7, 1], strides = [1, 1, 1, 1]}
        output y0 = %y
      }
      output y = %y
    })",
              kOn);
}

TEST(FuseSpaceToDepth, LeavesAPartFromTheMiddleAlone) {
  expect_no_change(kPass, R"(
    graph g(input %x: fp16[2, 3, 2, 16]) {
      %split = reshape(%x) {shape = [2, 3, 2, 2, 4, 2]}
      %swapped = transpose(%split) {permutation = [0, 1, 3, 2, 4, 5]}
      %whole = reshape(%swapped) {shape = [2, 6, 8, 2]}
      %y = slice(%whole) {starts = [0, 1, 0, 0], limits = [2, 5, 7, 1], strides = [1, 1, 1, 1]}
      output y = %y
    })",
                   kOn);
}

// Of x: fp16[2, 4, 4, 2], rearranged by four nodes.
std::string rearrangement(const std::string& padding, const std::string& split,
                          const std::string& permutation, const std::string& more = "") {
  return "graph g(input %x: fp16[2, 4, 4, 2]) {\n  %pad = pad(%x) {" + padding + "}\n" +
         "  %split = reshape(%pad) {shape = [" + split + "]}\n" +
         "  %swapped = transpose(%split) {permutation = [" + permutation + "]}\n" +
         "  %y = reshape(%swapped) {shape = [2, 2, 2, 8]}\n  output y = %y\n" + more + "}\n";
}

constexpr const char* kZeros = "low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0]";
constexpr const char* kBlocks = "2, 2, 2, 2, 2, 2";
constexpr const char* kSwap = "0, 1, 3, 2, 4, 5";

TEST(FuseSpaceToDepth, IsOffUnlessTheDeviceAsksForIt) {
  expect_no_change(kPass, rearrangement(kZeros, kBlocks, kSwap));
}

TEST(FuseSpaceToDepth, LeavesOtherPermutationsAlone) {
  expect_no_change(kPass, rearrangement(kZeros, kBlocks, "0, 1, 3, 4, 2, 5"), kOn);
}

TEST(FuseSpaceToDepth, LeavesOtherPaddingAlone) {
  const std::string spread = "low = [0, -2, -2, 0], high = [0, -1, -1, 0], interior = [0, 1, 1, 0]";
  expect_no_change(kPass, rearrangement(spread, kBlocks, kSwap), kOn);
  expect_no_change(kPass, rearrangement(std::string(kZeros) + ", value = 1", kBlocks, kSwap), kOn);
}

TEST(FuseSpaceToDepth, LeavesReshapesAcrossAxesAlone) {
  expect_no_change(kPass, rearrangement(kZeros, "2, 2, 1, 2, 2, 4", kSwap), kOn);
}

TEST(FuseSpaceToDepth, LeavesAloneWhatIsReadInBetween) {
  expect_no_change(kPass, rearrangement(kZeros, kBlocks, kSwap, "  output split = %split\n"), kOn);
}

}  // namespace
}  // namespace tessera::testing
