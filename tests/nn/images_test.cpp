#include "tessera/nn/images.h"

#include <span>

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

Tensor normalized(const Tensor& images, const nn::ImageInput& input) {
  Graph graph("images");
  Value* x = graph.add_input(InputRole::input, "images", {images.data_type(), to_symbolic(images.shape())});
  graph.add_output("result", nn::normalize_images(x, input));
  return run_reference(graph, std::span(&images, 1)).outputs.at(0);
}

TEST(NormalizeImages, TakesBytesToFractionsAndFractionsAsTheyAre) {
  const Tensor bytes = Tensor::from<uint8_t>({1, 1, 2, 2}, {0, 51, 255, 102});
  EXPECT_TRUE(
      normalized(bytes, {}).identical(Tensor::from<float>({1, 1, 2, 2}, {0, 51 / 255.0F, 1, 102 / 255.0F})));
  const Tensor fractions = Tensor::from<float>({1, 1, 1, 2}, {0.25F, -3});
  EXPECT_TRUE(normalized(fractions, {.type = DataType::fp32}).identical(fractions));
}

TEST(NormalizeImages, SubtractsAndDividesByChannelOrForAll) {
  const Tensor images = Tensor::from<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  const auto with = [&](std::vector<float> mean, std::vector<float> deviation) {
    return normalized(images, {.type = DataType::fp32, .mean = mean, .deviation = deviation});
  };
  EXPECT_TRUE(with({1, 2}, {2, 4}).identical(Tensor::from<float>({1, 1, 2, 2}, {0, 0, 1, 0.5F})));
  EXPECT_TRUE(with({1}, {2}).identical(Tensor::from<float>({1, 1, 2, 2}, {0, 0.5F, 1, 1.5F})));
  EXPECT_TRUE(with({0, 0}, {1}).identical(images));
}

TEST(NormalizeImages, RefusesNumbersThatDoNotFit) {
  const auto code = ErrorCode::invalid_argument;
  const Tensor images(DataType::uint8, {1, 2, 2, 3});
  EXPECT_ERROR(normalized(images, {.mean = {1, 2}}), code, "mean has 2", "3 channels");
  EXPECT_ERROR(normalized(images, {.deviation = {1, 2, 3, 4}}), code, "deviation has 4", "3 channels");
  EXPECT_ERROR(normalized(images, {.deviation = {0}}), code, "deviation is 0");
}

}  // namespace
}  // namespace tessera::testing
