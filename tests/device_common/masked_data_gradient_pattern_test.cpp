#include "tessera/device/common/convolution_patterns.h"

#include "passes/run_pass.h"
#include "support/fusions.h"

namespace tessera::testing {
namespace {

void expect_fusion(const std::string& text, const std::string& expected,
                   const PassContext& context = brings({backend::masked_data_gradient_pattern()})) {
  expect_pass("fuse_patterns", text, expected, context);
}

void expect_none(const std::string& text,
                 const PassContext& context = brings({backend::masked_data_gradient_pattern()})) {
  expect_no_change("fuse_patterns", text, context);
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

TEST(MaskedDataGradientPattern, TakesTheSumAndTheMask) {
  expect_fusion(kInputs + kMaskedSum + "}", kInputs + R"(
    %dz = fused(%dy, %weight, %other, %y) {kind = "convolution_data_gradient", role_values = [0, 1, 4, 2, 3], roles = ["output_gradient", "weight", "input_gradient", "addend", "mask"]} body graph convolution_data_gradient(
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
  })");
}

const std::string kSumAlone = R"(
    %sum = fused(%dy, %weight, %other) {kind = "convolution_data_gradient", role_values = [0, 1, 3, 2], roles = ["output_gradient", "weight", "input_gradient", "addend"]} body graph convolution_data_gradient(
      input %dy: fp32[2, 5, 5, 6], input %weight: fp32[6, 1, 1, 4], input %other: fp32[2, 5, 5, 4]) {
      %d = convolution_data_gradient(%dy, %weight) {dilations = [1, 1], input_shape = [2, 5, 5, 4], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
      %sum = add(%other, %d)
      output y0 = %sum
    }
    %zero = constant() {value = fp32[] (0)}
)";

TEST(MaskedDataGradientPattern, TakesTheSumAloneWhereOthersReadIt) {
  expect_fusion(kInputs + kMaskedSum + "output sum = %sum\n}", kInputs + kSumAlone + R"(
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %zero)
    output dz = %dz
    output sum = %sum
  })");
}

// A mask that lets through another value than zero is none of a relu.
TEST(MaskedDataGradientPattern, TakesTheSumAloneBeforeAnotherSelection) {
  const std::string selection = R"(
    %one = constant() {value = fp32[] (1)}
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %one)
    output dz = %dz
  })";
  expect_fusion(kInputs + R"(
    %d = convolution_data_gradient(%dy, %weight) {dilations = [1, 1], input_shape = [2, 5, 5, 4], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}
    %sum = add(%other, %d)
    %zero = constant() {value = fp32[] (0)}
)" + selection,
                kInputs + kSumAlone + selection);
}

TEST(MaskedDataGradientPattern, LeavesWhatOthersRead) {
  expect_none(kInputs + kMaskedSum + "output d = %d\n}");
}

TEST(MaskedDataGradientPattern, LeavesStridesAndOtherDevices) {
  expect_none(R"(
  graph g(input %dy: fp32[2, 3, 3, 6], input %weight: fp32[6, 1, 1, 4], input %other: fp32[2, 5, 5, 4],
          input %y: fp32[2, 5, 5, 4]) {
    %d = convolution_data_gradient(%dy, %weight) {dilations = [1, 1], input_shape = [2, 5, 5, 4], padding_high = [0, 0], padding_low = [0, 0], strides = [2, 2]}
    %sum = add(%other, %d)
    %zero = constant() {value = fp32[] (0)}
    %open = greater(%y, %zero)
    %dz = select(%open, %sum, %zero)
    output dz = %dz
  })");
  expect_none(kInputs + kMaskedSum + "}", {});
}

}  // namespace
}  // namespace tessera::testing
