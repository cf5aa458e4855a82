#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

void expect_fusion(const std::string& text, const std::string& expected,
                   const PassContext& context = brings({backend::contraction_pattern("matmul")})) {
  expect_pass("fuse_patterns", text, expected, context);
}

void expect_none(const std::string& text,
                 const PassContext& context = brings({backend::contraction_pattern("matmul")})) {
  expect_no_change("fuse_patterns", text, context);
}

TEST(MatmulPattern, TakesBiasAndActivation) {
  expect_fusion(R"(
    graph g(input %x: fp32[5, 4], parameter %w: fp32[4, 3], parameter %b: fp32[3]) {
      %m = matmul(%x, %w)
      %biased = add(%m, %b)
      %y = gelu(%biased)
      output y = %y
    })",
                R"(
    graph g(input %x: fp32[5, 4], parameter %w: fp32[4, 3], parameter %b: fp32[3]) {
      %y = fused(%x, %w, %b) {kind = "matmul", role_values = [0, 1, 3, 2, 4, 5], roles = ["a", "b", "y", "bias", "biased", "step"]} body graph matmul(
        input %x: fp32[5, 4], input %w: fp32[4, 3], input %b: fp32[3]) {
        %m = matmul(%x, %w)
        %biased = add(%m, %b)
        %y = gelu(%biased)
        output y0 = %y
      }
      output y = %y
    })");
}

TEST(MatmulPattern, LeavesAloneABiasPerRow) {
  expect_none(R"(
    graph g(input %x: fp32[5, 4], parameter %w: fp32[4, 5], parameter %b: fp32[5, 1]) {
      %m = matmul(%x, %w)
      %y = add(%m, %b)
      output y = %y
    })");
}

// An optimizer's sum with the decay of a weight is part of its cluster, for which nothing is stored.
TEST(MatmulPattern, LeavesAloneASumOfClusters) {
  expect_none(R"(
    graph g(input %x: fp32[5, 4], input %dy: fp32[5, 3], state %w: fp32[4, 3]) {
      %m = matmul(%x, %dy) {transpose_a = true}
      %decay = multiply(%w, %w)
      %gradient = add(%m, %decay)
      %y = subtract(%w, %gradient)
      update %w = %y
    })");
}

// So that x need not be kept until the second product can be made.
TEST(MatmulPattern, TheLaterOfTwoProductsTakesTheirSum) {
  expect_fusion(R"(
    graph g(input %x: fp32[5, 4], input %z: fp32[5, 4], input %dy: fp32[5, 3]) {
      %first = matmul(%x, %dy) {transpose_a = true}
      %second = matmul(%z, %dy) {transpose_a = true}
      %y = add(%first, %second)
      output y = %y
    })",
                R"(
    graph g(input %x: fp32[5, 4], input %z: fp32[5, 4], input %dy: fp32[5, 3]) {
      %first = matmul(%x, %dy) {transpose_a = true}
      %y = fused(%z, %dy, %first) {kind = "matmul", role_values = [0, 1, 3, 4], roles = ["a", "b", "y", "step"]} body graph matmul(
        input %z: fp32[5, 4], input %dy: fp32[5, 3], input %first: fp32[4, 3]) {
        %second = matmul(%z, %dy) {transpose_a = true}
        %y = add(%first, %second)
        output y0 = %y
      }
      output y = %y
    })");
}

TEST(MatmulPattern, TakesASumThatAProductReads) {
  expect_fusion(R"(
    graph g(input %x: fp32[3, 3], parameter %w: fp32[3, 3]) {
      %m = matmul(%x, %w)
      %half = multiply(%x, %x)
      %sum = add(%m, %half)
      %y = matmul(%sum, %w)
      output y = %y
    })",
                R"(
    graph g(input %x: fp32[3, 3], parameter %w: fp32[3, 3]) {
      %half = multiply(%x, %x)
      %sum = fused(%x, %w, %half) {kind = "matmul", role_values = [0, 1, 3, 4], roles = ["a", "b", "y", "step"]} body graph matmul(
        input %x: fp32[3, 3], input %w: fp32[3, 3], input %half: fp32[3, 3]) {
        %m = matmul(%x, %w)
        %sum = add(%m, %half)
        output y0 = %sum
      }
      %y = matmul(%sum, %w)
      output y = %y
    })");
}

TEST(MatmulPattern, LeavesAloneWhatAnUpdateReads) {
  expect_none(R"(
    graph g(input %x: fp32[3, 3], state %w: fp32[3, 3]) {
      %m = matmul(%x, %w)
      %y = relu(%m)
      output y = %y
      update %w = %m
    })");
}

}  // namespace
}  // namespace tessera::testing
