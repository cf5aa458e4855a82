#include "tessera/data/sound.h"

#include <gtest/gtest.h>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/sound_file.h"
#include "support/temporary_folder.h"

namespace tessera::testing {
namespace {

using data::EncodedSound;

constexpr int kWave = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
constexpr int kFlac = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;

std::vector<float> decoded(EncodedSound& sound, int64_t rate, int64_t first, int64_t count) {
  std::vector<float> samples(static_cast<size_t>(count));
  sound.decode(rate, first, samples);
  return samples;
}

class SoundFiles : public ::testing::TestWithParam<int> {
 protected:
  std::vector<std::byte> written(const std::vector<float>& samples, int64_t rate, int64_t channels = 1) {
    write_sound(folder_ / "sound", samples, rate, channels, GetParam());
    return read_file(folder_ / "sound");
  }
  TemporaryFolder folder_;
};

// To the nearest of 16 bits.
TEST_P(SoundFiles, GiveTheSamplesThatWereWritten) {
  std::vector<float> samples = tone(440, 0.1, 8000);
  samples[7] = -1;
  const std::vector<std::byte> bytes = written(samples, 8000);
  EncodedSound sound(bytes, "sound");
  EXPECT_EQ(sound.info().rate, 8000);
  EXPECT_EQ(sound.info().channels, 1);
  EXPECT_EQ(sound.info().frames, 800);
  EXPECT_EQ(sound.info().format, GetParam() == kWave ? "WAV" : "FLAC");
  const std::vector<float> read = decoded(sound, 8000, 0, 800);
  for (size_t i = 0; i < read.size(); ++i) EXPECT_NEAR(read[i], samples[i], 1.0 / 32768) << i;
  EXPECT_EQ(read[7], -32767.0F / 32768);  // libsndfile writes full scale as that
  const std::vector<float> part = decoded(sound, 8000, 123, 456);
  for (size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], read[123 + i]) << i;
  EXPECT_EQ(decoded(sound, 8000, 800, 0).size(), 0U);
}

TEST_P(SoundFiles, OfSeveralChannelsGiveTheirMean) {
  std::vector<float> samples;
  for (int i = 0; i < 50; ++i) samples.insert(samples.end(), {0.5F, -0.25F, 0.125F});
  const std::vector<std::byte> bytes = written(samples, 16000, 3);
  EncodedSound sound(bytes, "sound");
  EXPECT_EQ(sound.info().frames, 50);
  for (const float sample : decoded(sound, 16000, 0, 50)) EXPECT_FLOAT_EQ(sample, 0.125F);
}

// A tone stays that tone at another rate; one that the other rate cannot hold goes.
TEST_P(SoundFiles, AreResampled) {
  for (const auto& [own, rate] : std::vector<std::pair<int64_t, int64_t>>{{44100, 16000}, {8000, 16000}}) {
    const std::vector<std::byte> bytes = written(tone(1000, 0.5, own), own);
    EncodedSound sound(bytes, "sound");
    const int64_t frames = sound.frames_at(rate);
    EXPECT_EQ(frames, 8000);
    const std::vector<float> expected = tone(1000, 0.5, rate);
    const std::vector<float> actual = decoded(sound, rate, 0, frames);
    // 16 bits of the file, and a tenth of that from the filter, away from the ends, where sound begins at
    // once.
    for (size_t i = 1000; i < 7000; ++i) EXPECT_NEAR(actual[i], expected[i], 1.1 / 32768) << own << ' ' << i;
  }
  const std::vector<std::byte> bytes = written(tone(12000, 0.5, 44100), 44100);
  EncodedSound high(bytes, "sound");
  const std::vector<float> gone = decoded(high, 16000, 1000, 6000);
  for (const float sample : gone) EXPECT_NEAR(sample, 0, 1.1 / 32768);
}

TEST_P(SoundFiles, GivePartsOfTheResampledWhole) {
  const std::vector<std::byte> bytes = written(tone(700, 0.6, 44100), 44100);
  EncodedSound sound(bytes, "sound");
  const int64_t frames = sound.frames_at(16000);
  const std::vector<float> whole = decoded(sound, 16000, 0, frames);
  for (const int64_t first : {int64_t{1}, int64_t{159}, int64_t{160}, int64_t{4001}, frames - 300}) {
    const std::vector<float> part = decoded(sound, 16000, first, 300);
    // What is left of a filter 1,024 frames away.
    for (size_t i = 0; i < part.size(); ++i)
      EXPECT_NEAR(part[i], whole[static_cast<size_t>(first) + i], 0.1 / 32768) << first << ' ' << i;
  }
}

TEST_P(SoundFiles, ThatAreBrokenAreRefused) {
  const std::vector<std::byte> bytes = written(tone(440, 0.5, 8000), 8000);
  const auto code = ErrorCode::invalid_file;
  EXPECT_ERROR(EncodedSound({}, "none"), code, "none: is no sound that can be read");
  EXPECT_ERROR(EncodedSound(std::span(bytes).first(20), "head"), code, "head: ");
  EXPECT_ERROR(EncodedSound(bytes, "long", {.samples = 3999}), code, "long: has 4000 frames");
  // A file that ends before its header says is one of fewer frames, or breaks off where it is read.
  const std::span half = std::span(bytes).first(bytes.size() / 2);
  EncodedSound cut(half, "cut");
  if (cut.info().frames == 4000) {
    EXPECT_ERROR(decoded(cut, 8000, 0, 4000), code,
                 "cut: is truncated or corrupt between frames 0 and 4000 of 4000");
  } else {
    EXPECT_LT(cut.info().frames, 2200);
    decoded(cut, 8000, 0, cut.info().frames);
  }
  EncodedSound sound(bytes, "whole");
  std::vector<float> samples(10);
  EXPECT_ERROR(sound.decode(8000, 3995, samples), ErrorCode::invalid_argument, "frames 3995 to 4005 of 4000");
  EXPECT_ERROR(sound.decode(0, 0, samples), ErrorCode::invalid_argument, "0 samples a second");
}

INSTANTIATE_TEST_SUITE_P(Sound, SoundFiles, ::testing::Values(kWave, kFlac),
                         [](const auto& info) { return info.param == kWave ? "Wave" : "Flac"; });

TEST(Sound, OfOggAndOf24BitsIsRead) {
  const TemporaryFolder folder;
  for (const int format : {SF_FORMAT_OGG | SF_FORMAT_VORBIS, SF_FORMAT_WAV | SF_FORMAT_PCM_24,
                           SF_FORMAT_WAV | SF_FORMAT_FLOAT, SF_FORMAT_WAV | SF_FORMAT_ULAW}) {
    const std::vector<float> samples = tone(440, 0.25, 16000);
    write_sound(folder / "sound", samples, 16000, 1, format);
    const std::vector<std::byte> bytes = read_file(folder / "sound");
    EncodedSound sound(bytes, "sound");
    const std::vector<float> read = decoded(sound, 16000, 0, 4000);
    double error = 0;
    for (size_t i = 0; i < read.size(); ++i) error += (read[i] - samples[i]) * (read[i] - samples[i]);
    EXPECT_LT(std::sqrt(error / 4000), 0.03)
        << format;  // of a tone whose mean is 0.35; lossy ones are coarse
  }
  write_sound(folder / "other", tone(440, 0.25, 16000), 16000, 1, SF_FORMAT_AIFF | SF_FORMAT_PCM_16);
  const std::vector<std::byte> bytes = read_file(folder / "other");
  EXPECT_ERROR(EncodedSound(bytes, "other"), ErrorCode::invalid_file,
               "other: is sound of a format that is not read");
}

TEST(Sound, OfHardlyAnySamplesASecondIsRefused) {
  const TemporaryFolder folder;
  write_sound(folder / "slow", tone(1, 60, 10), 10);
  const std::vector<std::byte> bytes = read_file(folder / "slow");
  EXPECT_ERROR(EncodedSound(bytes, "slow"), ErrorCode::invalid_file, "600 frames of 1 channels, 10 a second");
}

TEST(Sound, ThatHoldsNoNumbersIsRefused) {
  const TemporaryFolder folder;
  std::vector<float> samples(100);
  samples[50] = std::numeric_limits<float>::quiet_NaN();
  write_sound(folder / "sound", samples, 16000, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT);
  const std::vector<std::byte> bytes = read_file(folder / "sound");
  EncodedSound sound(bytes, "sound");
  EXPECT_ERROR(decoded(sound, 16000, 0, 100), ErrorCode::invalid_file, "holds what is no number");
}

}  // namespace
}  // namespace tessera::testing
