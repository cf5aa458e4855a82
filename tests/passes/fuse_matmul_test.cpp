#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

TEST(FuseMatmul, TakesBiasAndActivation) {
  expect_pass("fuse_matmul", R"(
    graph g(input %x: fp32[5, 4], parameter %w: fp32[4, 3], parameter %b: fp32[3]) {
      %m = matmul(%x, %w)
      %biased = add(%m, %b)
      %y = gelu(%biased)
      output y = %y
    })",
              R"(
    graph g(input %x: fp32[5, 4], parameter %w: fp32[4, 3], parameter %b: fp32[3]) {
      %y = fused(%x, %w, %b) {kind = "matmul"} body graph matmul(
        input %x: fp32[5, 4], input %w: fp32[4, 3], input %b: fp32[3]) {
        %m = matmul(%x, %w)
        %biased = add(%m, %b)
        %y = gelu(%biased)
        output y0 = %y
      }
      output y = %y
    })");
}

TEST(FuseMatmul, LeavesAloneABiasPerRow) {
  expect_no_change("fuse_matmul", R"(
    graph g(input %x: fp32[5, 4], parameter %w: fp32[4, 5], parameter %b: fp32[5, 1]) {
      %m = matmul(%x, %w)
      %y = add(%m, %b)
      output y = %y
    })");
}

TEST(FuseMatmul, LeavesAloneWhatAnUpdateReads) {
  expect_no_change("fuse_matmul", R"(
    graph g(input %x: fp32[3, 3], state %w: fp32[3, 3]) {
      %m = matmul(%x, %w)
      %y = relu(%m)
      output y = %y
      update %w = %m
    })");
}

}  // namespace
}  // namespace tessera::testing
