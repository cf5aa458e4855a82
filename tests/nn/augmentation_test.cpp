#include "tessera/nn/augmentation.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "tessera/data/safetensors.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "nn/augmentation_case.h"
#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::testing {
namespace {

Tensor adjusted(const Tensor& images, const std::string& what, float factor) {
  return output_of([&](Graph& graph, nn::Context&) {
    nn::ColorFactors factors;
    Value* value = numbers(graph, std::vector<float>(static_cast<size_t>(images.shape()[0]), factor));
    (what == "brightness" ? factors.brightness
     : what == "contrast" ? factors.contrast
     : what == "hue"      ? factors.hue
                          : factors.saturation) = value;
    graph.add_output("y", nn::adjust_color(ops::constant(graph, images), factors));
  });
}

TEST(AdjustColor, IsPillowsAndThatOfYiq) {
  const auto file = data::SafetensorsFile::open(std::filesystem::path(TESSERA_TEST_FOLDER) / "golden" /
                                                "colors.safetensors");
  const Tensor source = as_batch(file.read("source"));
  int compared = 0;
  for (const auto& [name, entry] : file.entries()) {
    if (name == "source") continue;
    const size_t slash = name.find('/');
    const float factor = slash == std::string::npos ? 0 : std::stof(name.substr(slash + 1));
    const Tensor pixels =
        rounded(adjusted(source, name == "gray" ? "saturation" : name.substr(0, slash), factor));
    EXPECT_LE(largest_difference(pixels, file.read(name)), 1) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 21);
}

// Gray levels between 120 and 140, which no factor below takes out of 0..255.
Tensor dull_images() {
  Tensor images(DataType::uint8, {2, 4, 5, 3});
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, static_cast<double>(120 + i * 37 % 21));
  return images;
}

TEST(AdjustColor, CommutesWhereNothingIsCut) {
  const Tensor images = dull_images();
  const Tensor together = output_of([&](Graph& graph, nn::Context&) {
    graph.add_output(
        "y", nn::adjust_color(ops::constant(graph, images), {.brightness = numbers(graph, {1.2F, 1.2F}),
                                                             .contrast = numbers(graph, {0.7F, 0.7F}),
                                                             .saturation = numbers(graph, {1.3F, 1.3F}),
                                                             .hue = numbers(graph, {0.1F, 0.1F})}));
  });
  const std::vector<std::pair<std::string, float>> steps{
      {"hue", 0.1F}, {"brightness", 1.2F}, {"saturation", 1.3F}, {"contrast", 0.7F}};
  Tensor forward = images.clone();
  for (const auto& [what, factor] : steps) forward = adjusted(forward, what, factor);
  Tensor backward = images.clone();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    backward = adjusted(backward, step->first, step->second);
  EXPECT_GT(largest_difference(together, images), 20);
  EXPECT_LE(largest_difference(together, forward), 1e-3);  // fp32 of numbers up to 255
  EXPECT_LE(largest_difference(together, backward), 1e-3);
}

TEST(AdjustColor, KeepsImagesOfOtherChannelsToBrightnessAndContrast) {
  const Tensor gray = Tensor::from<uint8_t>({1, 1, 2, 1}, {100, 140});
  EXPECT_LE(largest_difference(adjusted(gray, "contrast", 0.5F), Tensor::from<float>({2}, {110, 130})), 1e-4);
  EXPECT_ERROR(adjusted(gray, "hue", 0.5F), ErrorCode::invalid_argument, "3 channels", "have 1");
}

nn::AugmentationOptions everything() {
  return {
      .brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1, .grayscale = 0.2, .erasing = 0.5};
}

TEST(AugmentImages, DependsOnTheStepAndTheRowAlone) {
  const Tensor images = images_of(6);
  const Tensor whole = output_of(augmenting(images, everything()), 3);
  EXPECT_TRUE(whole.identical(output_of(augmenting(images, everything()), 3)));
  EXPECT_FALSE(whole.identical(output_of(augmenting(images, everything()), 4)));
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Tensor part =
        output_of(augmenting(rows_of(images, rank * 2, 2), everything()), 3, {.rank = rank, .count = 3});
    EXPECT_TRUE(part.identical(rows_of(whole, rank * 2, 2))) << rank;
  }
}

TEST(AugmentImages, ErasesOneRectangleOfTheAskedShare) {
  Tensor images(DataType::uint8, {64, 20, 30, 1});
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, 200);
  const nn::AugmentationOptions options{
      .erasing = 0.5, .erasing_minimum_share = 0.1, .erasing_maximum_share = 0.2, .erasing_fill = {7}};
  const Tensor result = output_of(augmenting(images, options));
  int erased = 0;
  for (int64_t n = 0; n < 64; ++n) {
    int64_t top = 20, bottom = -1, left = 30, right = -1, count = 0;
    for (int64_t i = 0; i < 600; ++i) {
      if (result.at(n * 600 + i) != 7) continue;
      ++count;
      top = std::min(top, i / 30), bottom = std::max(bottom, i / 30);
      left = std::min(left, i % 30), right = std::max(right, i % 30);
    }
    if (count == 0) continue;
    ++erased;
    EXPECT_EQ(count, (bottom - top + 1) * (right - left + 1));
    EXPECT_GE(count, 600 * 0.1 * 0.8);  // whole pixels, and at most the image's sides
    EXPECT_LE(count, 600 * 0.2 * 1.2);
  }
  EXPECT_GT(erased, 16);  // 32 on average; 4 deviations of a binomial
  EXPECT_LT(erased, 48);
}

TEST(AugmentImages, TurnsImagesGray) {
  const Tensor images = images_of(64);
  const Tensor result = output_of(augmenting(images, {.grayscale = 0.5}));
  int gray = 0;
  for (int64_t n = 0; n < 64; ++n) {
    const Tensor own = rows_of(result, n, 1);
    double spread = 0;
    for (int64_t i = 0; i < own.size(); i += 3)
      spread = std::max(spread, std::abs(own.at(i) - own.at(i + 1)));
    if (spread < 1e-3) {
      ++gray;
    } else {
      EXPECT_LE(largest_difference(own, rows_of(images, n, 1)), 1e-3);
    }
  }
  EXPECT_GT(gray, 16);
  EXPECT_LT(gray, 48);
}

TEST(AugmentImages, RefusesWhatIsOutOfRange) {
  const auto code = ErrorCode::invalid_argument;
  const auto check = [](const nn::AugmentationOptions& options, int64_t channels = 3) {
    nn::check_augmentation(options, channels);
  };
  EXPECT_ERROR(check({.brightness = -1}), code, "brightness is -1");
  EXPECT_ERROR(check({.hue = 0.6}), code, "hue is 0.6", "0 to 0.5");
  EXPECT_ERROR(check({.mixup = NAN}), code, "mixup is nan");
  EXPECT_ERROR(check({.erasing_minimum_share = 0.5, .erasing_maximum_share = 0.1}), code, "0.5 to 0.1");
  EXPECT_ERROR(check({.erasing_fill = {1, 2}}), code, "2 values", "3 channels");
  EXPECT_ERROR(check({.grayscale = 1}, 1), code, "grayscale", "have 1");
}

// Rows of one level each, so that shares can be read off: 0, 100, 0, 100, ...
std::vector<Tensor> mixed_rows(const nn::AugmentationOptions& options, int64_t batch,
                               int32_t first_label = 0) {
  Tensor images(DataType::uint8, {batch, 8, 8, 1});
  std::vector<int32_t> labels(static_cast<size_t>(batch));
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, i / 64 % 2 == 0 ? 0 : 100);
  for (size_t n = 0; n < labels.size(); ++n) labels[n] = static_cast<int32_t>(n);
  labels[0] = first_label;
  return outputs_of([&](Graph& graph, nn::Context& context) {
    Value* pixels = ops::cast(ops::constant(graph, images), DataType::fp32);
    Value* classes = ops::constant(graph, Tensor::from<int32_t>({batch}, labels));
    const nn::Mixed mixed = nn::mix_images(context, pixels, classes, options);
    graph.add_output("images", mixed.images);
    graph.add_output("partner_label", mixed.partner_label);
    graph.add_output("share", mixed.share);
  });
}

double mean_level(const Tensor& images, int64_t row) {
  double sum = 0;
  for (int64_t i = 0; i < 64; ++i) sum += images.at(row * 64 + i);
  return sum / 64;
}

// Of mixup, CutMix, or both: the share is what is left of the own image, and the rest is the partner's.
TEST(MixImages, SaysHowMuchOfEachImageIsThere) {
  const std::vector<nn::AugmentationOptions> all{
      {.mixup = 0.2}, {.cutmix = 1}, {.mixup = 1, .cutmix = 0.5, .mix_probability = 0.8}};
  for (const nn::AugmentationOptions& options : all) {
    const std::vector<Tensor> mixed = mixed_rows(options, 33);
    int changed = 0;
    for (int64_t n = 0; n < 33; ++n) {
      const double share = mixed[2].at(n);
      const double own = n % 2 == 0 ? 0 : 100;
      const bool alone = n == 32;
      EXPECT_EQ(mixed[1].at(n), static_cast<double>(alone ? 32 : n ^ 1));
      // Levels up to 100, rounded to fp32 by four nodes.
      EXPECT_NEAR(mean_level(mixed[0], n), alone ? own : share * own + (1 - share) * (100 - own),
                  4 * 100 * 0x1p-24);
      changed += share < 1 ? 1 : 0;
    }
    EXPECT_GT(changed, 10);
  }
}

TEST(MixImages, CutMixPutsOneRectangleIn) {
  const std::vector<Tensor> mixed = mixed_rows({.cutmix = 1}, 32);
  for (int64_t i = 0; i < mixed[0].size(); ++i)
    EXPECT_TRUE(mixed[0].at(i) == 0 || mixed[0].at(i) == 100) << mixed[0].at(i);
}

TEST(MixImages, LeavesAloneWhatCannotBeRead) {
  for (const nn::AugmentationOptions& options : {nn::AugmentationOptions{.mixup = 1}, {.cutmix = 1}}) {
    const std::vector<Tensor> mixed = mixed_rows(options, 4, -1);
    EXPECT_EQ(mixed[2].at(0), 1);
    EXPECT_EQ(mixed[2].at(1), 1);
    EXPECT_EQ(mean_level(mixed[0], 1), 100);
    EXPECT_LT(mixed[2].at(2), 1);
  }
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2a + 1)); that of 1 is uniform, that of 2 has the
// cumulative distribution 3x^2 - 2x^3.
TEST(BetaQuantiles, AreThoseOfTheDistribution) {
  constexpr size_t kCount = 4096;
  for (const double concentration : {0.1, 0.2, 0.5, 1.0, 2.0, 10.0}) {
    const std::vector<float> quantiles = nn::beta_quantiles(concentration, kCount);
    ASSERT_EQ(quantiles.size(), kCount + 1);
    EXPECT_EQ(quantiles.front(), 0);
    EXPECT_EQ(quantiles.back(), 1);
    double square = 0;  // of numbers drawn by them, linear between two
    for (size_t i = 0; i < kCount; ++i) {
      const double low = quantiles[i] - 0.5;
      const double high = quantiles[i + 1] - 0.5;
      EXPECT_LE(low, high);
      square += (low * low + low * high + high * high) / 3 / kCount;
    }
    const double variance = 1 / (4 * (2 * concentration + 1));
    // In each part both the distribution and the line have their mean square between those of its ends, which
    // fall from a quarter to 0 and rise again.
    EXPECT_NEAR(square, variance, 0.5 / kCount) << concentration;
  }
  const std::vector<float> two = nn::beta_quantiles(2, kCount);
  // Numbers below one, rounded to fp32, where the distribution has a density of at most one and a half.
  for (size_t i = 0; i <= kCount; i += 64) {
    EXPECT_NEAR(3 * std::pow(two[i], 2) - 2 * std::pow(two[i], 3), static_cast<double>(i) / kCount,
                1.5 * 0x1p-24);
  }
}

}  // namespace
}  // namespace tessera::testing
