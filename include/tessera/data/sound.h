// Sound in files: WAV, FLAC and Ogg, from their bytes to samples of one channel at a wanted rate.
//
//   EncodedSound sound(bytes, "yes.flac");
//   std::vector<float> samples(static_cast<size_t>(sound.frames_at(16000)));
//   sound.decode(16000, 0, samples);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tessera::data {

// What a file's header says. A frame is one sample of each channel.
struct SoundInfo {
  std::string format;  // "WAV", "FLAC", ...
  int64_t rate = 0;    // frames per second
  int64_t channels = 0;
  int64_t frames = 0;
  double seconds() const { return static_cast<double>(frames) / static_cast<double>(rate); }
};

// Full scale of 32768; what is beyond is cut.
int16_t to_int16(float sample);

struct SoundLimits {
  int64_t samples = int64_t{1} << 28;  // of a file, of all its channels, whatever part is wanted
};

// A sound whose header was read. Its bytes must outlive it; for one thread at a time.
class EncodedSound {
 public:
  // `name` stands in the messages. Throws Error(invalid_file) when the bytes are no sound of a known format,
  // their header is broken or says what no sound has, or there are more samples than the limit.
  EncodedSound(std::span<const std::byte> bytes, const std::string& name, const SoundLimits& limits = {});
  EncodedSound(EncodedSound&&) noexcept;
  EncodedSound& operator=(EncodedSound&&) noexcept;
  ~EncodedSound();

  const SoundInfo& info() const;
  // How many frames it has at another rate, of 1,000 to 2^20 a second: rounded up.
  int64_t frames_at(int64_t rate) const;

  // Decodes samples.size() frames from `first` on, both counted at `rate`, each the mean of its channels;
  // full scale is -1 to 1. Other rates are resampled (band-limited, by libsoxr at its high quality); a part
  // has the samples that the whole would have there, within what is left of the filter 1,024 frames away.
  // Throws Error(invalid_argument) when there is no such part or rate, Error(invalid_file) when the file ends
  // before what its header says or is corrupt in that part.
  void decode(int64_t rate, int64_t first, std::span<float> samples);

  class Reader;

 private:
  std::string name_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace tessera::data
