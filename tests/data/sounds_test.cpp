#include "tessera/data/sounds.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/sound_file.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using data::SoundExamples;

// high: 0.5 s and 3 s; low: 1 s and 1.7 s.
class Sounds : public ::testing::Test {
 protected:
  Sounds() {
    write_sound(folder_ / "high/a.wav", tone(2000, 0.5, 8000), 8000);
    write_sound(folder_ / "high/b.flac", tone(2000, 3, 16000), 16000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
    write_sound(folder_ / "low/a.WAV", tone(200, 1, 8000), 8000);
    write_sound(folder_ / "low/deep/b.wav", tone(200, 1.7, 8000), 8000);
    write_file(folder_ / "low/notes.txt", "no sound");
  }
  std::shared_ptr<const data::EncodedSamples> samples() const {
    return data::open_sound_folder(folder_.path(), {.test_share = 0});
  }
  TemporaryFolder folder_;
};

struct Read {
  std::vector<int16_t> samples;
  int32_t length = -1;
  int32_t label = -2;
};

Read read(const SoundExamples& examples, int64_t index, const data::RandomView& view = {}) {
  const auto bucket = static_cast<size_t>(examples.bucket_of(index));
  const int64_t steps = examples.buckets()[bucket].at("steps");
  Read result{.samples = std::vector<int16_t>(static_cast<size_t>(steps * examples.options().hop), 77)};
  examples.read(index, view,
                {std::as_writable_bytes(std::span(result.samples)),
                 std::as_writable_bytes(std::span(&result.length, 1)),
                 std::as_writable_bytes(std::span(&result.label, 1))});
  return result;
}

TEST_F(Sounds, AreFilledUpOrCutToOneLength) {
  const SoundExamples examples(samples(), {.rate = 8000, .hop = 80, .seconds = {1}});
  EXPECT_EQ(examples.size(), 4);
  EXPECT_EQ(examples.class_names(), (std::vector<std::string>{"high", "low"}));
  EXPECT_EQ(to_string(examples.fields()[0].type), "int16[batch, steps, 80]");
  const Read shorter = read(examples, 0);
  ASSERT_EQ(shorter.samples.size(), 8000U);
  EXPECT_EQ(shorter.length, 4000);
  EXPECT_EQ(shorter.label, 0);
  EXPECT_NEAR(shorter.samples[1], 16384, 1);  // a quarter of 2000 Hz at 8000 a second, half of full scale
  for (size_t i = 4000; i < 8000; ++i) EXPECT_EQ(shorter.samples[i], 0);
  const Read longer = read(examples, 1);
  EXPECT_EQ(longer.length, 8000);
  EXPECT_EQ(read(examples, 2).label, 1);
  EXPECT_EQ(examples.class_of(1), 0);
  EXPECT_EQ(examples.class_of(2), 1);
}

TEST_F(Sounds, TakeTheShortestRowThatHoldsThem) {
  const SoundExamples examples(samples(), {.rate = 8000, .hop = 80, .seconds = {0.5, 1, 2}});
  std::vector<int64_t> steps;
  for (const SymbolBindings& bucket : examples.buckets()) steps.push_back(bucket.at("steps"));
  EXPECT_EQ(steps, (std::vector<int64_t>{50, 100, 200}));
  std::vector<int64_t> buckets;
  for (int64_t i = 0; i < 4; ++i) buckets.push_back(examples.bucket_of(i));
  EXPECT_EQ(buckets, (std::vector<int64_t>{0, 2, 1, 2}));
  EXPECT_EQ(read(examples, 3).length, 13600);
  EXPECT_EQ(read(examples, 1).length, 16000);
  const auto batches =
      std::make_shared<data::ExampleBatches>(std::make_shared<SoundExamples>(samples(), examples.options()),
                                             data::BatchOptions{.batch_size = 2, .drop_last = false});
  EXPECT_EQ(batches->batches(0), 3);
}

// A part that training takes depends on seed, epoch and sound, and lies anywhere.
TEST_F(Sounds, AreCutAtRandomPlacesInTraining) {
  std::vector<float> ramp(24000);  // the sample says where it is
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i) / 32768;
  write_sound(folder_ / "high/b.flac", ramp, 8000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  const SoundExamples examples(samples(), {.rate = 8000, .hop = 80, .seconds = {1}, .random = true});
  std::set<int16_t> starts;
  int64_t early = 0;
  for (uint64_t epoch = 0; epoch < 200; ++epoch) {
    const Read part = read(examples, 1, {.seed = 4, .epoch = epoch});
    EXPECT_NEAR(part.samples.back() - part.samples.front(), 7999, 1);  // full scale is written as 32767
    starts.insert(part.samples.front());
    early += part.samples.front() < 8000 ? 1 : 0;
  }
  EXPECT_GT(starts.size(), 180U);
  EXPECT_NEAR(early, 100, 36);  // half of 16,001 places; five deviations of 7.1
  EXPECT_EQ(read(examples, 1, {.seed = 4, .epoch = 9}).samples,
            read(examples, 1, {.seed = 4, .epoch = 9}).samples);
  const SoundExamples middle(samples(), {.rate = 8000, .hop = 80, .seconds = {1}});
  EXPECT_NEAR(read(middle, 1).samples.front(), 8000, 1);
}

TEST_F(Sounds, ThatAreBrokenFailAreSkippedOrReplaced) {
  write_file(folder_ / "high/a.wav", "RIFF and no more");
  for (const std::vector<double>& seconds : {std::vector<double>{1.0}, std::vector<double>{1.0, 2.0}}) {
    data::SoundExampleOptions options{.rate = 8000, .hop = 80, .seconds = seconds};
    EXPECT_ERROR(read(SoundExamples(samples(), options), 0), ErrorCode::invalid_file, "a.wav: is no sound");
    options.broken = data::BrokenSamples::skip;
    const SoundExamples skipping(samples(), options);
    const Read skipped = read(skipping, 0);
    EXPECT_EQ(skipped.label, -1);
    EXPECT_EQ(skipped.length, 0);
    EXPECT_EQ(std::set<int16_t>(skipped.samples.begin(), skipped.samples.end()), std::set<int16_t>{0});
    ASSERT_EQ(skipping.remarks().size(), 1U);
    EXPECT_NE(skipping.remarks()[0].find("1 of 4 samples could not be read and were skipped"),
              std::string::npos);
    options.broken = data::BrokenSamples::replace;
    EXPECT_EQ(read(SoundExamples(samples(), options), 0).label, 0);
  }
}

TEST_F(Sounds, SayWhatIsWrong) {
  const auto code = ErrorCode::invalid_argument;
  const auto with = [&](const data::SoundExampleOptions& options) {
    return SoundExamples(samples(), options);
  };
  EXPECT_ERROR(with({.seconds = {}}), code, "rows of 0 lengths");
  EXPECT_ERROR(with({.seconds = {2, 1}}), code, "rows of 1 seconds do not follow");
  EXPECT_ERROR(with({.seconds = {-1}}), code, "rows of -1 seconds");
  EXPECT_ERROR(with({.rate = 0}), code, "0 samples a second");
  const TemporaryFolder empty;
  EXPECT_ERROR(data::open_sound_folder(empty.path()), ErrorCode::invalid_file,
               "holds no sounds; expected a folder for each class with files ending in .wav, .flac, .ogg");
}

}  // namespace
}  // namespace tessera::testing
