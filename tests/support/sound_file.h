// Sounds as files, written by libsndfile.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>
#include <sndfile.h>

namespace tessera::testing {

// Full scale is -1 to 1; `format` as libsndfile has it.
inline void write_sound(const std::filesystem::path& path, const std::vector<float>& samples, int64_t rate,
                        int64_t channels = 1, int format = SF_FORMAT_WAV | SF_FORMAT_PCM_16) {
  std::filesystem::create_directories(path.parent_path());
  SF_INFO info{};
  info.samplerate = static_cast<int>(rate);
  info.channels = static_cast<int>(channels);
  info.format = format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  ASSERT_NE(file, nullptr) << sf_strerror(nullptr);
  const auto count = static_cast<sf_count_t>(samples.size());
  EXPECT_EQ(sf_write_float(file, samples.data(), count), count);
  EXPECT_EQ(sf_close(file), 0);
}

inline std::vector<float> tone(double hertz, double seconds, int64_t rate, double loudness = 0.5) {
  std::vector<float> samples(static_cast<size_t>(std::llround(seconds * static_cast<double>(rate))));
  for (size_t i = 0; i < samples.size(); ++i) {
    const double angle = 2 * std::numbers::pi * hertz * static_cast<double>(i) / static_cast<double>(rate);
    samples[i] = static_cast<float>(loudness * std::sin(angle));
  }
  return samples;
}

}  // namespace tessera::testing
