#include "passes/run_pass.h"

namespace tessera::testing {
namespace {

PassOptions options() {
  PassOptions options;
  options.fuse_data_gradients = true;
  return options;
}

const std::string kInputs = R"(
  graph g(input %dy: fp32[2, 5, 5, 6], input %weight: fp32[6, 1, 1, 4], input %other: fp32[2, 5, 5, 4],
          input %y: fp32[2, 5, 5, 4]) {)";

const std::string kMaskedSum = R"(
    %d = convolution_data_gradient(%dy, %weight) {dilations = [1, 1], input_shape = [2, 5, 5, 4], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
    %sum = add(%other, %d)
    %zero = constant() {value = fp32[] (0)}
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %zero)
    output dz = %dz
)";

TEST(FuseDataGradient, TakesTheSumAndTheMask) {
  expect_pass("fuse_data_gradient", kInputs + kMaskedSum + "}", kInputs + R"(
    %dz = fused(%dy, %weight, %other, %y) {kind = "convolution_data_gradient"} body graph convolution_data_gradient(
      input %dy: fp32[2, 5, 5, 6], input %weight: fp32[6, 1, 1, 4], input %other: fp32[2, 5, 5, 4],
      input %y: fp32[2, 5, 5, 4]) {
      %d = convolution_data_gradient(%dy, %weight) {dilations = [1, 1], input_shape = [2, 5, 5, 4], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %sum = add(%other, %d)
      %zero = constant() {value = fp32[] (0)}
      %open = greater(%y, %zero)
      %dz = select(%open, %sum, %zero)
      output y0 = %dz
    }
    output dz = %dz
  })",
              options());
}

const std::string kSumAlone = R"(
    %sum = fused(%dy, %weight, %other) {kind = "convolution_data_gradient"} body graph convolution_data_gradient(
      input %dy: fp32[2, 5, 5, 6], input %weight: fp32[6, 1, 1, 4], input %other: fp32[2, 5, 5, 4]) {
      %d = convolution_data_gradient(%dy, %weight) {dilations = [1, 1], input_shape = [2, 5, 5, 4], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %sum = add(%other, %d)
      output y0 = %sum
    }
    %zero = constant() {value = fp32[] (0)}
)";

TEST(FuseDataGradient, TakesTheSumAloneWhereOthersReadIt) {
  expect_pass("fuse_data_gradient", kInputs + kMaskedSum + "output sum = %sum\n}", kInputs + kSumAlone + R"(
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %zero)
    output dz = %dz
    output sum = %sum
  })",
              options());
}

// A mask that lets through another value than zero is none of a relu.
TEST(FuseDataGradient, TakesTheSumAloneBeforeAnotherSelection) {
  const std::string selection = R"(
    %one = constant() {value = fp32[] (1)}
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %one)
    output dz = %dz
  })";
  expect_pass("fuse_data_gradient", kInputs + R"(
    %d = convolution_data_gradient(%dy, %weight) {dilations = [1, 1], input_shape = [2, 5, 5, 4], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
    %sum = add(%other, %d)
    %zero = constant() {value = fp32[] (0)}
)" + selection,
              kInputs + kSumAlone + selection, options());
}

TEST(FuseDataGradient, LeavesWhatOthersRead) {
  expect_no_change("fuse_data_gradient", kInputs + kMaskedSum + "output d = %d\n}", options());
}

TEST(FuseDataGradient, LeavesStridesAndOtherDevices) {
  expect_no_change("fuse_data_gradient", R"(
  graph g(input %dy: fp32[2, 3, 3, 6], input %weight: fp32[6, 1, 1, 4], input %other: fp32[2, 5, 5, 4],
          input %y: fp32[2, 5, 5, 4]) {
    %d = convolution_data_gradient(%dy, %weight) {dilations = [1, 1], input_shape = [2, 5, 5, 4], padding_high = [0, 0], padding_low = [0, 0], strides = [2, 2]}
    %sum = add(%other, %d)
    %zero = constant() {value = fp32[] (0)}
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %zero)
    output dz = %dz
  })",
                   options());
  expect_no_change("fuse_data_gradient", kInputs + kMaskedSum + "}");
}

}  // namespace
}  // namespace tessera::testing
