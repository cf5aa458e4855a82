#include "tessera/tasks/sound_classification.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/recipe/run.h"

#include "support/expect_error.h"
#include "support/sound_file.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

constexpr int64_t kRate = 4000;
constexpr int64_t kFormats[] = {SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_FLAC | SF_FORMAT_PCM_16};

// Three classes of tones that rise, fall or stay, of lengths that take rows of both sizes.
void write_tones(const std::filesystem::path& folder, int64_t count) {
  constexpr const char* kNames[] = {"falls", "rises", "stays"};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t kind = i % 3;
    const double seconds = 0.4 + 0.05 * static_cast<double>(i % 11);
    const double start = 500 + 37 * static_cast<double>(i % 13);
    const double slope = kind == 0 ? -300 : kind == 1 ? 300 : 0;  // of half of the angle's quadratic term
    std::vector<float> samples(static_cast<size_t>(seconds * kRate));
    for (size_t s = 0; s < samples.size(); ++s) {
      const double t = static_cast<double>(s) / kRate;
      samples[s] = static_cast<float>(0.4 * std::sin(2 * std::numbers::pi * (start * t + slope * t * t)));
    }
    const auto format = static_cast<int>(kFormats[i % 2]);
    write_sound(folder / kNames[kind] / fmt::format("{:03}{}", i, i % 2 == 0 ? ".wav" : ".flac"), samples,
                kRate, 1, format);
  }
}

std::string recipe_text(const std::filesystem::path& folder, const std::string& more) {
  return fmt::format(
      "task.name = 'sound_classification'\n"
      "model = {{classes = 3, widths = [16, 16], bands = 24, window = 160, transform = 256}}\n"
      "data = {{path = '{}', rate = {}, hop = 40, seconds = [0.6, 1.0], test_share = 0.2}}\n"
      "optimizer = {{name = 'adam', learning_rate = 0.005}}\n{}",
      folder.string(), kRate, more);
}

TEST(SoundClassification, LearnsTonesApart) {
  const TemporaryFolder folder;
  write_tones(folder / "tones", 150);
  const recipe::Recipe recipe =
      recipe::parse_recipe(recipe_text(folder / "tones",
                                       "train = {epochs = 8, batch = 10, device = 'cpu'}\n"
                                       "augment = {band_masks = 1, widest_bands = 3, time_masks = 1}"),
                           "tones");
  recipe::run_recipe(recipe, {.folder = folder / "run", .quiet = true});
  recipe::FinishedRun run = recipe::open_run(folder / "run");
  const train::TestSet test = run.workload.test();
  const auto evaluator = test.evaluator();
  EXPECT_EQ(run.trainer.evaluate(*test.source, *evaluator), 30);
  // Guessing gets a third; a classifier of slopes tells all apart.
  EXPECT_GE(evaluator->results().at("accuracy"), 0.9);
  EXPECT_EQ(evaluator->sections().size(), evaluator->results().at("accuracy") < 1 ? 2U : 1U);
}

// Faster and slower tones, with noise, still rise, fall or stay, also at the end of what a row holds.
TEST(SoundClassification, LearnsTonesAtOtherSpeedsInNoise) {
  const TemporaryFolder folder;
  write_tones(folder / "tones", 150);
  const recipe::Recipe recipe = recipe::parse_recipe(
      recipe_text(folder / "tones",
                  "train = {epochs = 8, batch = 10, device = 'cpu'}\n"
                  "augment = {speeds = [0.9, 1.0, 1.1], noise = 0.8, noise_decibels = [15, 30]}"),
      "tones");
  recipe::run_recipe(recipe, {.folder = folder / "run", .quiet = true});
  recipe::FinishedRun run = recipe::open_run(folder / "run");
  const train::TestSet test = run.workload.test();
  const auto evaluator = test.evaluator();
  run.trainer.evaluate(*test.source, *evaluator);
  EXPECT_GE(evaluator->results().at("accuracy"), 0.9);
}

TEST(SoundClassification, TellsWhatFilesAre) {
  const TemporaryFolder folder;
  write_tones(folder / "tones", 30);
  const recipe::Recipe recipe = recipe::parse_recipe(
      recipe_text(folder / "tones", "train = {epochs = 1, batch = 5, device = 'cpu'}"), "tones");
  recipe::run_recipe(recipe, {.folder = folder / "run", .quiet = true});
  recipe::FinishedRun run = recipe::open_run(folder / "run");
  const std::string file = (folder / "tones/rises/001.flac").string();
  const train::PredictionSet set = run.workload.file_predictions({file});
  EXPECT_EQ(set.source->batches(0), 1);
}

TEST(SoundClassification, SaysWhatCannotGoTogether) {
  const TemporaryFolder folder;
  write_tones(folder / "tones", 9);
  const auto refused = [&](const std::string& key, const std::string& value) {
    std::string text = recipe_text(folder / "tones", "");
    text += key + " = " + value + "\n";
    return recipe::parse_recipe(text, "tones");
  };
  EXPECT_ERROR(refused("augment.widest_bands", "99"), ErrorCode::invalid_argument, "augment.widest_bands");
  EXPECT_ERROR(refused("augment.noise_decibels", "[10]"), ErrorCode::invalid_argument,
               "'augment.noise_decibels' has 1 numbers");
  EXPECT_ERROR(refused("augment.noise_decibels", "[30, 10]"), ErrorCode::invalid_argument, "from 30 to 10");
  EXPECT_ERROR(refused("augment.speeds", "[0.955]"), ErrorCode::invalid_argument, "expected hundredths");
  EXPECT_ERROR(tasks::sound_classification({.widths = {}}), ErrorCode::invalid_argument, "0 stages");
  EXPECT_ERROR(tasks::sound_classification({.hop = 0}), ErrorCode::invalid_argument, "in steps of 0");
}

TEST(SpectrogramPicture, ShowsATone) {
  std::vector<int16_t> sound(1600);
  const std::vector<float> samples = tone(1000, 0.1, 16000);
  for (size_t i = 0; i < sound.size(); ++i) sound[i] = static_cast<int16_t>(samples[i] * 32767);
  const nn::SpectrogramOptions options{.bands = 40};
  const report::Picture picture = tasks::spectrogram_picture(sound, 160, options);
  EXPECT_EQ(picture.height, 40);
  EXPECT_EQ(picture.width, 10);
  // Of the band of 1000 Hz, number 14 of 40 up to 8000 Hz in mel, the row from the bottom is white.
  int64_t brightest = 0;
  for (int64_t row = 0; row < 40; ++row) {
    if (picture.pixels[static_cast<size_t>(row * 10 + 5)] >
        picture.pixels[static_cast<size_t>(brightest * 10 + 5)])
      brightest = row;
  }
  EXPECT_NEAR(static_cast<double>(39 - brightest), 13.4, 1);
  EXPECT_ERROR(tasks::spectrogram_picture(sound, 150, options), ErrorCode::invalid_argument,
               "in steps of 150");
}

}  // namespace
}  // namespace tessera::testing
