#include "tessera/nn/sound_augmentation.h"

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

constexpr int64_t kSamples = 1200;
constexpr double kRoundoff = 0x1p-24;

using Build = std::function<std::vector<Value*>(Graph& graph, nn::Context& context)>;

std::vector<Tensor> outputs_of(const Build& build, int64_t step = 0) {
  Graph graph("sound");
  nn::Context context(graph, nn::Mode::training);
  for (Value* output : build(graph, context))
    graph.add_output(fmt::format("y{}", graph.outputs().size()), output);
  std::vector<Tensor> inputs;
  if (!graph.inputs().empty()) inputs.push_back(Tensor::from<int64_t>({2}, {5, step}));
  return run_reference(graph, inputs).outputs;
}

data::SafetensorsFile golden() {
  return data::SafetensorsFile::open(std::filesystem::path(TESSERA_TEST_FOLDER) / "golden" /
                                     "sound_augmentation.safetensors");
}

Value* rows_of(Graph& graph, const Tensor& samples, int64_t hop) {
  return ops::reshape(ops::constant(graph, samples), {samples.shape()[0], kSamples / hop, hop});
}

// Of each row as many samples as both have are the same, and ours are zero after those of torchaudio, which
// summed in double: a sum of `taps` products, whose filters are rounded once and whose weights sum to about
// one, of samples up to 1.
void expect_resampled(const Tensor& actual, const Tensor& expected, int64_t taps) {
  const int64_t known = expected.shape()[1];
  double loudest = 0;
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < kSamples; ++i) {
      const double wanted = i < known ? expected.at(row * known + i) : 0;
      ASSERT_NEAR(actual.at(row * kSamples + i), wanted,
                  i < known ? 4 * static_cast<double>(taps) * kRoundoff : 0)
          << row << ", " << i;
      loudest = std::max(loudest, std::abs(wanted));
    }
  }
  EXPECT_GT(loudest, 0.3);
}

TEST(Resample, IsThatOfTorchaudio) {
  const data::SafetensorsFile file = golden();
  const Tensor sounds = file.read("sounds");
  struct Case {
    int64_t from, to, hop;
  };
  for (const Case& given :
       {Case{9, 10, 80}, Case{11, 10, 80}, Case{100, 95, 60}, Case{3, 2, 1}, Case{1, 2, 1200}}) {
    const auto made = outputs_of([&](Graph& graph, nn::Context&) -> std::vector<Value*> {
      return {nn::resample(rows_of(graph, sounds, given.hop), 4 * given.from, 4 * given.to)};
    });
    EXPECT_EQ(made[0].shape(), (Shape{2, kSamples / given.hop, given.hop}));
    const Tensor expected = file.read(fmt::format("resampled_{}_{}", given.from, given.to));
    expect_resampled(made[0], expected, 14 * given.from / std::min(given.from, given.to) + given.from);
  }
}

TEST(Resample, TakesIntegersOfFullScaleAndSymbolicRows) {
  Graph graph("sound");
  Value* sounds = graph.add_input(
      InputRole::input, "x", {DataType::int16, {Dimension::symbol("batch"), Dimension::symbol("steps"), 50}});
  graph.add_output("y", nn::resample(sounds, 9, 10));
  Tensor constant(DataType::int16, {1, 4, 50});
  std::ranges::fill(constant.data<int16_t>(), int16_t{16384});
  const auto sized = specialize(graph, {{"batch", 1}, {"steps", 4}});
  const Tensor made = run_reference(*sized, std::vector<Tensor>{constant}).outputs.at(0);
  EXPECT_EQ(made.shape(), (Shape{1, 4, 50}));
  // A filter's weights sum to one within what its window leaves of the sinc.
  for (int64_t i = 30; i < 170; ++i) EXPECT_NEAR(made.at(i), 0.5, 1e-3);
}

TEST(Resample, RoundsLengthsUp) {
  const auto lengths_of = [](int64_t from, int64_t to) {
    return outputs_of([&](Graph& graph, nn::Context&) -> std::vector<Value*> {
             Value* lengths = ops::constant(graph, Tensor::from<int32_t>({4}, {0, 1, 777, 1200}));
             Value* sounds = ops::constant(graph, Tensor(DataType::int16, {4, 12, 100}));
             return {nn::resampled_lengths(lengths, sounds, from, to)};
           })
        .at(0)
        .to_doubles();
  };
  EXPECT_EQ(lengths_of(11, 10), (std::vector<double>{0, 1, 707, 1091}));
  EXPECT_EQ(lengths_of(9, 10), (std::vector<double>{0, 2, 864, 1200}));  // the row has no more
  EXPECT_EQ(lengths_of(200, 100), (std::vector<double>{0, 1, 389, 600}));
}

TEST(Resample, SaysWhichRatesAreOutOfRange) {
  const auto resampled = [](int64_t from, int64_t to) {
    return outputs_of([&](Graph& graph, nn::Context&) -> std::vector<Value*> {
      return {nn::resample(ops::constant(graph, Tensor(DataType::fp32, {1, 4, 50})), from, to)};
    });
  };
  EXPECT_ERROR(resampled(0, 5), ErrorCode::invalid_argument, "from 0 to 5");
  EXPECT_ERROR(resampled(8000, 8001), ErrorCode::invalid_argument, "filters for 8001 places");
}

TEST(Noise, IsThatOfTorchaudioWhereTheSoundIs) {
  const data::SafetensorsFile file = golden();
  const auto made = outputs_of([&](Graph& graph, nn::Context&) -> std::vector<Value*> {
    return {nn::add_noise(rows_of(graph, file.read("sounds"), 80), rows_of(graph, file.read("noise"), 80),
                          ops::constant(graph, file.read("decibels")),
                          ops::constant(graph, file.read("lengths")))};
  });
  const Tensor expected = file.read("noisy");
  const Tensor lengths = file.read("lengths");
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < kSamples; ++i) {
      const double wanted = i < lengths.at(row) ? expected.at(row * kSamples + i) : 0;
      // Of the scale, whose energies are sums of 1200 squares, root and power of e have a few roundings.
      ASSERT_NEAR(made[0].at(row * kSamples + i), wanted, 16 * kRoundoff * (1 + std::abs(wanted)))
          << row << ", " << i;
    }
  }
}

TEST(Noise, LeavesSilenceAndEmptyRowsAsTheyAre) {
  const auto made = outputs_of([](Graph& graph, nn::Context&) -> std::vector<Value*> {
    return {nn::add_noise(ops::constant(graph, Tensor(DataType::int16, {2, 4, 50})),
                          ops::constant(graph, Tensor::full(DataType::fp32, {2, 4, 50}, 1)),
                          ops::constant(graph, Tensor::full(DataType::fp32, {2}, 10)),
                          ops::constant(graph, Tensor::from<int32_t>({2}, {200, 0})))};
  });
  for (const double sample : made[0].to_doubles()) EXPECT_EQ(sample, 0);
}

// Rows of a sound that is 600 of 800 samples long.
std::vector<Tensor> augmented(const nn::SoundAugmentation& options, int64_t step = 3, int64_t rows = 200) {
  Tensor samples(DataType::int16, {rows, 8, 100});
  for (int64_t i = 0; i < samples.size(); ++i)
    samples.set(i, i % 800 < 600 ? std::round(8000 * std::sin(0.2 * static_cast<double>(i % 800))) : 0);
  return outputs_of(
      [&](Graph& graph, nn::Context& context) -> std::vector<Value*> {
        Value* lengths = ops::constant(graph, Tensor::full(DataType::int32, {rows}, 600));
        const nn::AugmentedSounds made =
            nn::augment_sounds(context, ops::constant(graph, samples), lengths, options);
        return {made.sounds, made.lengths};
      },
      step);
}

TEST(SoundAugmentation, TakesEachSpeedAsOften) {
  const Tensor lengths = augmented({.speeds = {0.9, 1, 1.1}}).at(1);
  std::map<double, int> count;
  for (const double length : lengths.to_doubles()) ++count[length];
  ASSERT_EQ(count.size(), 3U);
  // Of 200 rows a third, with a deviation of 6.7, of which five are allowed.
  for (const double length : {667.0, 600.0, 546.0}) EXPECT_NEAR(count[length], 200 / 3.0, 5 * 6.7) << length;
  const Tensor others = augmented({.speeds = {0.9, 1, 1.1}}, 4).at(1);
  EXPECT_NE(others.to_doubles(), lengths.to_doubles());
}

TEST(SoundAugmentation, AddsNoiseOfTheLoudnessThatIsAskedForToAShare) {
  const Tensor clean = augmented({}).at(0);
  const Tensor noisy = augmented({.noise = 0.5, .least_decibels = 6, .most_decibels = 20}).at(0);
  int changed = 0;
  double least = 100, most = -100;
  for (int64_t row = 0; row < 200; ++row) {
    double of_sound = 0, of_noise = 0, after = 0;
    for (int64_t i = 0; i < 800; ++i) {
      const double sample = clean.at(row * 800 + i) / 32768;
      const double difference = noisy.at(row * 800 + i) - sample;
      of_sound += sample * sample;
      (i < 600 ? of_noise : after) += difference * difference;
    }
    EXPECT_EQ(after, 0);
    if (of_noise == 0) continue;
    ++changed;
    const double decibels = 10 * std::log10(of_sound / of_noise);
    least = std::min(least, decibels);
    most = std::max(most, decibels);
  }
  EXPECT_NEAR(changed, 100, 5 * 7.1);  // five deviations
  // Of 64 rows at least, uniform over 14 decibels, some are within the first and the last three.
  EXPECT_TRUE(least > 5.99 && least < 9 && most < 20.01 && most > 17) << least << " " << most;
}

TEST(SoundAugmentation, DoesNothingUnlessAsked) {
  const std::vector<Tensor> made = augmented({});
  EXPECT_EQ(made[0].data_type(), DataType::int16);
}

TEST(SoundAugmentation, SaysWhichOptionIsOutOfRange) {
  const auto code = ErrorCode::invalid_argument;
  EXPECT_ERROR(nn::check_sound_augmentation({.speeds = {}}), code, "0 speeds");
  EXPECT_ERROR(nn::check_sound_augmentation({.speeds = {0.4}}), code, "a speed of 0.4");
  EXPECT_ERROR(nn::check_sound_augmentation({.speeds = {0.955}}), code, "expected hundredths");
  EXPECT_ERROR(nn::check_sound_augmentation({.noise = 1.5}), code, "probability 1.5");
  EXPECT_ERROR(nn::check_sound_augmentation({.least_decibels = 20, .most_decibels = 10}), code,
               "from 20 to 10 decibels");
}

}  // namespace
}  // namespace tessera::testing
