#include "tessera/nn/sound.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/data/safetensors.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "support/expect_error.h"
#include "test_folder.h"

namespace tessera::testing {
namespace {

using Build = std::function<Value*(Graph& graph, nn::Context& context)>;

Tensor output_of(const Build& build, int64_t step = 0) {
  Graph graph("sound");
  nn::Context context(graph, nn::Mode::training);
  graph.add_output("y", build(graph, context));
  std::vector<Tensor> inputs;
  if (!graph.inputs().empty()) inputs.push_back(Tensor::from<int64_t>({2}, {5, step}));
  return run_reference(graph, inputs).outputs.at(0);
}

data::SafetensorsFile golden() {
  return data::SafetensorsFile::open(std::filesystem::path(TESSERA_TEST_FOLDER) / "golden" /
                                     "spectrograms.safetensors");
}

// A sum of `window` products whose factors are rounded to fp32 is off by its terms' roundings and its own; a
// power is off by twice its root times that, for each of two parts, and by the rounding of librosa's and
// ours.
void expect_powers(const Tensor& actual, const Tensor& expected, const Tensor& sound, int64_t window) {
  constexpr double kRoundoff = 0x1p-24;
  double loudest = 0;
  for (int64_t i = 0; i < sound.size(); ++i) loudest = std::max(loudest, std::abs(sound.at(i)) / 32768);
  const double terms = static_cast<double>(window) * loudest;
  ASSERT_EQ(actual.size(), expected.size());
  double power = 0;
  for (int64_t i = 0; i < actual.size(); ++i) {
    power += expected.at(i);
    const double root = std::sqrt(expected.at(i));
    const double off = kRoundoff * (terms + root);
    EXPECT_NEAR(actual.at(i), expected.at(i),
                4 * root * off + 2 * off * off + 4 * kRoundoff * expected.at(i));
  }
  EXPECT_GT(power, 1);
}

TEST(Spectrogram, IsThatOfLibrosa) {
  const data::SafetensorsFile file = golden();
  const Tensor sound = file.read("sound");
  const auto power_of = [&](int64_t hop, const nn::SpectrogramOptions& options) {
    return output_of([&](Graph& graph, nn::Context&) {
      Value* steps = ops::reshape(ops::constant(graph, sound), {1, sound.size() / hop, hop});
      return nn::power_spectrogram(steps, options);
    });
  };
  expect_powers(power_of(160, {}), file.read("power"), sound, 400);
  expect_powers(power_of(100, {.window = 99, .transform = 128}), file.read("odd_power"), sound, 99);
}

TEST(Spectrogram, HasTheBandsOfLibrosa) {
  const Tensor expected = golden().read("bands");
  const Tensor actual = nn::mel_bands({.bands = 40, .lowest = 60, .highest = 7600});
  ASSERT_EQ(actual.shape(), expected.shape());
  // Heights of 1 at most, each the quotient of two differences of frequencies in double, stored in fp32.
  for (int64_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual.at(i), expected.at(i), 0x1p-23);
}

TEST(Spectrogram, OfSilenceIsItsFloor) {
  const Tensor bands = output_of([](Graph& graph, nn::Context&) {
    return nn::log_mel_spectrogram(ops::constant(graph, Tensor(DataType::int16, {2, 3, 160})),
                                   {.bands = 5, .floor = 1e-6});
  });
  EXPECT_EQ(bands.shape(), (Shape{2, 3, 5}));
  for (int64_t i = 0; i < bands.size(); ++i) EXPECT_NEAR(bands.at(i), std::log(1e-6), 1e-5);
}

TEST(Spectrogram, SaysWhichOptionIsOutOfRange) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(nn::check_spectrogram({.window = 600}, 160), code, "a window of 600");
  EXPECT_ERROR(nn::check_spectrogram({.transform = 511}, 160), code, "a transform of 511");
  EXPECT_ERROR(nn::check_spectrogram({.bands = 0}, 160), code, "0 bands");
  EXPECT_ERROR(nn::check_spectrogram({.highest = 9000}, 160), code, "bands from 0 to 9000 Hz");
  EXPECT_ERROR(nn::check_spectrogram({.floor = 0}, 160), code, "a floor of 0");
  EXPECT_ERROR(nn::check_spectrogram({}, 0), code, "in steps of 0");
}

TEST(Bands, AreNormalizedOverTheFramesThatSound) {
  const std::vector<float> values{1, 10, 3, 30, 5, 20, 99, 99, 2, 2, 4, 2, 99, 99, 99, 99};
  const Tensor frames = output_of([&](Graph& graph, nn::Context&) {
    Value* lengths = ops::constant(graph, Tensor::from<int32_t>({2}, {21, 20}));
    return nn::sounding_frames(lengths, ops::constant(graph, Tensor(DataType::int16, {2, 4, 10})));
  });
  const std::vector<int> expected{1, 1, 1, 0, 1, 1, 0, 0};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(frames.at(static_cast<int64_t>(i)), expected[i]) << i;
  const Tensor normalized = output_of([&](Graph& graph, nn::Context&) {
    return nn::normalize_bands(ops::constant(graph, Tensor::from<float>({2, 4, 2}, values)),
                               ops::constant(graph, frames));
  });
  const double scale = std::sqrt(8.0 / 3 + 1e-5), other = std::sqrt(200.0 / 3 + 1e-5),
               last = std::sqrt(1 + 1e-5);
  const std::vector<double> wanted{-2 / scale, -10 / other, 0,        10 / other, 2 / scale, 0, 0, 0,
                                   -1 / last,  0,           1 / last, 0,          0,         0, 0, 0};
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(normalized.at(static_cast<int64_t>(i)), wanted[i],
                4 * 0x1p-24 * std::max(1.0, std::abs(wanted[i])))
        << i;
}

// Lengths of the stretches of zeros along an axis, of rows that hold ones elsewhere.
std::vector<int64_t> zeros_along(const Tensor& masked, int64_t row, int64_t axis) {
  const int64_t steps = masked.shape()[1], bands = masked.shape()[2];
  std::vector<int64_t> places;
  for (int64_t place = 0; place < (axis == 1 ? steps : bands); ++place) {
    bool all = true;
    for (int64_t other = 0; other < (axis == 1 ? bands : steps); ++other) {
      const int64_t step = axis == 1 ? place : other, band = axis == 1 ? other : place;
      all = all && masked.at((row * steps + step) * bands + band) == 0;
    }
    if (all) places.push_back(place);
  }
  return places;
}

TEST(SpectrogramMasks, CoverStretchesUpToTheLongest) {
  constexpr int64_t kRows = 200;
  const auto masked_of = [](const nn::SpectrogramMasks& masks, int64_t step) {
    return output_of(
        [&](Graph& graph, nn::Context& context) {
          Tensor ones(DataType::fp32, {kRows, 20, 10});
          std::ranges::fill(ones.data<float>(), 1.0F);
          return nn::mask_spectrogram(context, ops::constant(graph, ones), masks);
        },
        step);
  };
  const Tensor in_time = masked_of({.time_masks = 1, .longest_share = 0.25}, 3);
  const Tensor in_bands = masked_of({.band_masks = 1, .widest_bands = 4}, 3);
  std::vector<int64_t> of_length(21), covers_step(20), of_width(11);
  for (int64_t row = 0; row < kRows; ++row) {
    const auto steps = zeros_along(in_time, row, 1);
    ++of_length[steps.size()];
    for (const int64_t step : steps) ++covers_step[static_cast<size_t>(step)];
    if (!steps.empty()) {
      EXPECT_EQ(steps.back() - steps.front() + 1, std::ssize(steps));
    }
    EXPECT_EQ(zeros_along(in_time, row, 2).size(), 0U);
    ++of_width[zeros_along(in_bands, row, 2).size()];
  }
  // Each length of 0 to 5, and width of 0 to 4, is as likely: of 200 rows 33 and 40 have it on average, with
  // a deviation of 5.3 and 5.7, of which five are allowed.
  for (size_t length = 0; length <= 5; ++length)
    EXPECT_NEAR(of_length[length], kRows / 6.0, 5 * 5.3) << length;
  for (size_t width = 0; width <= 4; ++width) EXPECT_NEAR(of_width[width], kRows / 5.0, 5 * 5.7) << width;
  for (const int64_t count : covers_step) EXPECT_GT(count, 0);
  const Tensor other = masked_of({.time_masks = 1, .longest_share = 0.25}, 4);
  EXPECT_FALSE(std::ranges::equal(other.data<float>(), in_time.data<float>()));
  EXPECT_ERROR(masked_of({.band_masks = 1, .widest_bands = 11}, 0), ErrorCode::invalid_argument,
               "up to 11 of 10");
  EXPECT_ERROR(masked_of({.time_masks = 1, .longest_share = 2}, 0), ErrorCode::invalid_argument,
               "up to 2 of");
}

}  // namespace
}  // namespace tessera::testing
