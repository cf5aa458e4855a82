#include "tessera/nn/volume_augmentation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "nn/augmentation_case.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

constexpr int64_t kDepth = 5;
constexpr int64_t kHeight = 6;
constexpr int64_t kWidth = 7;
constexpr int64_t kVoxels = kDepth * kHeight * kWidth;

// The number of each voxel in its volume and, as a second channel, the volume's own.
Tensor numbered(int64_t batch, DataType type = DataType::fp32) {
  Tensor volumes(type, {batch, kDepth, kHeight, kWidth, 2});
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < kVoxels; ++i) {
      volumes.set(2 * (n * kVoxels + i), static_cast<double>(i));
      volumes.set(2 * (n * kVoxels + i) + 1, static_cast<double>(n));
    }
  }
  return volumes;
}

Value* whole_numbers(Graph& graph, const std::vector<int32_t>& values) {
  return ops::constant(graph, Tensor::from<int32_t>({std::ssize(values)}, values));
}

Value* flags(Graph& graph, const std::vector<bool>& values) {
  Tensor tensor(DataType::boolean, {std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i] ? 1 : 0);
  return ops::constant(graph, tensor);
}

TEST(CutVolumes, TakesAPartOfEachAndTurnsItAround) {
  const std::vector<std::vector<int32_t>> starts{{0, 2}, {3, 1}, {4, 0}};
  const std::vector<std::vector<bool>> reversed{{false, true}, {true, true}, {false, true}};
  const std::array<int64_t, 3> size{3, 2, 3};
  for (const DataType type : {DataType::fp32, DataType::uint8}) {
    const Tensor parts = output_of([&](Graph& graph, nn::Context&) {
      nn::VolumeParts of{};
      for (size_t axis = 0; axis < 3; ++axis) {
        of.starts[axis] = whole_numbers(graph, starts[axis]);
        of.reversed[axis] = flags(graph, reversed[axis]);
      }
      graph.add_output("y", nn::cut_volumes(ops::constant(graph, numbered(2, type)), of, size));
    });
    ASSERT_EQ(parts.shape(), (Shape{2, 3, 2, 3, 2}));
    EXPECT_EQ(parts.data_type(), type);
    int64_t next = 0;
    for (size_t n = 0; n < 2; ++n) {
      for (int64_t i = 0; i < 3 * 2 * 3; ++i) {
        const std::array<int64_t, 3> at{i / 6, i / 3 % 2, i % 3};
        std::array<int64_t, 3> from{};
        for (size_t axis = 0; axis < 3; ++axis)
          from[axis] = starts[axis][n] + (reversed[axis][n] ? size[axis] - 1 - at[axis] : at[axis]);
        const int64_t voxel = (from[0] * kHeight + from[1]) * kWidth + from[2];
        EXPECT_EQ(parts.at(next++), static_cast<double>(voxel));
        EXPECT_EQ(parts.at(next++), static_cast<double>(n));
      }
    }
  }
}

// As batchgenerators' augment_gamma() has it, of volumes with numbers below zero, and of one that is all the
// same.
TEST(AdjustGamma, RaisesTheShareOfTheRange) {
  Tensor volumes(DataType::fp32, {3, 2, 2, 2, 2});
  for (int64_t i = 0; i < volumes.size(); ++i)
    volumes.set(i, i >= 32 ? 4.5 : static_cast<double>(i * 37 % 23) - 11);
  const std::vector<float> gammas{0.7F, 1.5F, 2};
  const Tensor raised = output_of([&](Graph& graph, nn::Context&) {
    graph.add_output("y", nn::adjust_gamma(ops::constant(graph, volumes), numbers(graph, gammas)));
  });
  for (int64_t n = 0; n < 3; ++n) {
    double low = 1e9;
    double high = -1e9;
    for (int64_t i = 16 * n; i < 16 * n + 16; ++i) {
      low = std::min(low, volumes.at(i));
      high = std::max(high, volumes.at(i));
    }
    for (int64_t i = 16 * n; i < 16 * n + 16; ++i) {
      const double share = (volumes.at(i) - low) / (high - low + 1e-7);
      const double expected = std::pow(share, gammas[static_cast<size_t>(n)]) * (high - low + 1e-7) + low;
      EXPECT_NEAR(raised.at(i), expected, 1e-5) << i;  // fp32 of numbers up to 11
    }
  }
}

std::vector<Tensor> augmented(const Tensor& volumes, const nn::VolumeAugmentationOptions& options,
                              int64_t step = 0, const nn::Ranks& ranks = {}) {
  return outputs_of(
      [&](Graph& graph, nn::Context& context) {
        Value* labels = ops::cast(ops::constant(graph, volumes), DataType::int32);
        const nn::LabeledVolumes result =
            nn::augment_volumes(context, {ops::constant(graph, volumes), labels}, options);
        graph.add_output("volumes", result.volumes);
        graph.add_output("labels", result.labels);
      },
      step, ranks);
}

// Every place and every direction comes, the labels are the voxels', and the volume stays one piece.
TEST(AugmentVolumes, LabelsFollowThePart) {
  const int64_t batch = 64;
  const std::vector<Tensor> result = augmented(numbered(batch), {.crop = {{2, 6, 3}}, .flip = 0.5});
  ASSERT_EQ(result[0].shape(), (Shape{batch, 2, 6, 3, 2}));
  std::set<int64_t> corners;
  std::map<int64_t, int> directions;
  for (int64_t n = 0; n < batch; ++n) {
    const auto voxel = [&](int64_t i) { return std::llround(result[0].at(2 * (n * 36 + i))); };
    int64_t smallest = kVoxels;
    for (int64_t i = 0; i < 36; ++i) {
      EXPECT_EQ(result[0].at(2 * (n * 36 + i)), result[1].at(2 * (n * 36 + i)));
      EXPECT_EQ(result[0].at(2 * (n * 36 + i) + 1), static_cast<double>(n));
      smallest = std::min<int64_t>(smallest, voxel(i));
    }
    corners.insert(smallest);
    const int64_t along[] = {voxel(18) - voxel(0), voxel(3) - voxel(0), voxel(1) - voxel(0)};
    EXPECT_EQ(std::abs(along[0]), kHeight * kWidth);
    EXPECT_EQ(std::abs(along[1]), kWidth);
    EXPECT_EQ(std::abs(along[2]), 1);
    for (int64_t axis = 0; axis < 3; ++axis) directions[axis] += along[axis] < 0 ? 1 : 0;
  }
  // 64 draws of 4 x 1 x 5 places, of which 19 come on average, with a deviation of 1.
  EXPECT_GE(corners.size(), 15U);
  EXPECT_EQ(*corners.begin() / kWidth % kHeight, 0);
  for (const auto& [axis, reversed] : directions) {
    EXPECT_GE(reversed, 16) << axis;  // 32 on average; 4 deviations of a binomial
    EXPECT_LE(reversed, 48) << axis;
  }
}

TEST(AugmentVolumes, BrightnessAndNoiseAreOfEachVolumeByItself) {
  Tensor volumes(DataType::fp32, {64, 8, 8, 8, 1});
  for (int64_t i = 0; i < volumes.size(); ++i) volumes.set(i, 10);
  const auto moments = [&](const nn::VolumeAugmentationOptions& options) {
    std::vector<std::pair<double, double>> all;
    const Tensor result = augmented(volumes, options)[0];
    for (int64_t n = 0; n < 64; ++n) {
      double mean = 0;
      double square = 0;
      for (int64_t i = 512 * n; i < 512 * n + 512; ++i) mean += result.at(i) / 512;
      for (int64_t i = 512 * n; i < 512 * n + 512; ++i) square += std::pow(result.at(i) - mean, 2) / 512;
      all.emplace_back(mean, std::sqrt(square));
    }
    return all;
  };
  std::set<double> factors;
  for (const auto& [mean, deviation] : moments({.brightness = 0.3, .brightness_probability = 0.5})) {
    EXPECT_LE(std::abs(mean - 10), 3);
    EXPECT_LE(deviation, 1e-5);
    factors.insert(mean);
  }
  EXPECT_GE(factors.size(), 17U);  // 33 on average, those that stay as one; 4 deviations of a binomial
  EXPECT_LE(factors.size(), 49U);
  double largest = 0;
  int noisy = 0;
  for (const auto& [mean, deviation] : moments({.noise = 0.5, .noise_probability = 0.5})) {
    EXPECT_LE(std::abs(mean - 10), 0.5 * 4.5 / std::sqrt(512));  // 4.5 deviations of a mean
    largest = std::max(largest, deviation);
    noisy += deviation > 1e-4 ? 1 : 0;
  }
  EXPECT_GE(noisy, 16);
  EXPECT_LE(noisy, 48);
  EXPECT_LE(largest, 0.5 * (1 + 4.5 / std::sqrt(2 * 512)));
  EXPECT_GE(largest, 0.3);
}

// Half of them below one, however unlike the two sides are.
TEST(AugmentVolumes, GammaIsAsOftenBelowOneAsAboveIt) {
  Tensor volumes(DataType::fp32, {64, 1, 1, 3, 1});
  for (int64_t i = 0; i < volumes.size(); ++i) volumes.set(i, static_cast<double>(i % 3) / 2);
  const Tensor result = augmented(volumes, {.minimum_gamma = 0.7, .maximum_gamma = 1.5})[0];
  int below = 0;
  for (int64_t n = 0; n < 64; ++n) {
    const double gamma = std::log(result.at(3 * n + 1)) / std::log(0.5);
    EXPECT_GE(gamma, 0.7 - 1e-5);
    EXPECT_LE(gamma, 1.5 + 1e-5);
    below += gamma < 1 ? 1 : 0;
  }
  EXPECT_GE(below, 16);
  EXPECT_LE(below, 48);
  const Tensor above = augmented(volumes, {.minimum_gamma = 1.2, .maximum_gamma = 1.5})[0];
  for (int64_t n = 0; n < 64; ++n) EXPECT_LE(above.at(3 * n + 1), std::pow(0.5, 1.2) + 1e-5);
}

nn::VolumeAugmentationOptions everything() {
  return {.crop = {{4, 4, 5}},
          .flip = 1.0 / 3,
          .brightness = 0.3,
          .noise = 0.1,
          .minimum_gamma = 0.7,
          .maximum_gamma = 1.5};
}

TEST(AugmentVolumes, DependsOnTheStepAndTheRowAlone) {
  const Tensor volumes = numbered(6);
  const std::vector<Tensor> whole = augmented(volumes, everything(), 3);
  EXPECT_TRUE(whole[0].identical(augmented(volumes, everything(), 3)[0]));
  EXPECT_FALSE(whole[0].identical(augmented(volumes, everything(), 4)[0]));
  for (int64_t rank = 0; rank < 3; ++rank) {
    const std::vector<Tensor> part =
        augmented(rows_of(volumes, rank * 2, 2), everything(), 3, {.rank = rank, .count = 3});
    for (size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(part[i].identical(rows_of(whole[i], rank * 2, 2))) << rank << " " << i;
  }
}

TEST(AugmentVolumes, RefusesWhatIsOutOfRange) {
  const auto code = ErrorCode::invalid_argument;
  const auto make = [](const nn::VolumeAugmentationOptions& options) { augmented(numbered(2), options); };
  EXPECT_ERROR(make({.crop = {{2, 7, 2}}}), code, "parts of 2x7x2", "5x6x7");
  EXPECT_ERROR(make({.crop = {{0, 2, 2}}}), code, "parts of 0x2x2");
  EXPECT_ERROR(make({.flip = 1.5}), code, "flip of volumes is 1.5");
  EXPECT_ERROR(make({.brightness = 2}), code, "brightness of volumes is 2");
  EXPECT_ERROR(make({.noise = -1}), code, "noise of volumes is -1");
  EXPECT_ERROR(make({.minimum_gamma = 2}), code, "from 2 to 1");
  const auto unlike = [](Graph& graph, nn::Context& context) {
    Value* volumes = ops::constant(graph, numbered(2));
    nn::augment_volumes(context,
                        {volumes, ops::slice(volumes, {0, 1, 0, 0, 0}, {2, kDepth, kHeight, kWidth, 2})}, {});
  };
  EXPECT_ERROR(outputs_of(unlike), code, "labels of other voxels");
}

}  // namespace
}  // namespace tessera::testing
