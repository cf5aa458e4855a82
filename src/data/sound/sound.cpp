#include "tessera/data/sound.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <sndfile.h>
#include <soxr.h>

#include "tessera/base/error.h"

namespace tessera::data {
namespace {

constexpr int64_t kMostChannels = 64;
// Of files and of what is made of them: between others each frame would become thousands.
constexpr int64_t kLowestRate = 1000;
constexpr int64_t kHighestRate = 1 << 20;
// Around a part that is resampled: the filter's tail beyond is below the last bit of 16.
constexpr int64_t kMargin = 1024;

bool is_rate(int64_t rate) {
  return rate >= kLowestRate && rate <= kHighestRate;
}

std::string format_of(int format) {
  switch (format & SF_FORMAT_TYPEMASK) {
    case SF_FORMAT_WAV:
    case SF_FORMAT_WAVEX:
    case SF_FORMAT_RF64:
      return "WAV";
    case SF_FORMAT_FLAC:
      return "FLAC";
    case SF_FORMAT_OGG:
      return "Ogg";
    default:
      return "";
  }
}

}  // namespace

class EncodedSound::Reader {
 public:
  Reader(std::span<const std::byte> all, const std::string& name, const SoundLimits& limits) : bytes_(all) {
    SF_VIRTUAL_IO calls{.get_filelen = length, .seek = seek, .read = take, .write = write, .tell = tell};
    SF_INFO info{};
    file_.reset(sf_open_virtual(&calls, SFM_READ, &info, this));
    const auto code = ErrorCode::invalid_file;
    require(file_ != nullptr, code, "{}: is no sound that can be read: {}", name, sf_strerror(nullptr));
    info_ = {.format = format_of(info.format),
             .rate = info.samplerate,
             .channels = info.channels,
             .frames = info.frames};
    require(!info_.format.empty(), code,
            "{}: is sound of a format that is not read; expected WAV, FLAC or Ogg", name);
    require(is_rate(info_.rate) && info_.channels > 0 && info_.channels <= kMostChannels && info_.frames > 0,
            code, "{}: its header tells of {} frames of {} channels, {} a second", name, info_.frames,
            info_.channels, info_.rate);
    require(info_.frames <= limits.samples / info_.channels, code,
            "{}: has {} frames of {} channels, more than {} samples", name, info_.frames, info_.channels,
            limits.samples);
  }

  const SoundInfo& info() const { return info_; }

  // That part at the file's own rate, zeros where there is nothing before or after.
  std::vector<float> read(int64_t first, int64_t count, const std::string& name) {
    std::vector<float> mono(static_cast<size_t>(count));
    const int64_t begin = std::clamp<int64_t>(first, 0, info_.frames);
    const int64_t end = std::clamp<int64_t>(first + count, begin, info_.frames);
    std::vector<float> frames(static_cast<size_t>((end - begin) * info_.channels));
    const bool whole =
        begin == end || (sf_seek(file_.get(), begin, SEEK_SET) == begin &&
                         sf_readf_float(file_.get(), frames.data(), end - begin) == end - begin);
    require(whole, ErrorCode::invalid_file, "{}: is truncated or corrupt between frames {} and {} of {}",
            name, begin, end, info_.frames);
    const auto channels = static_cast<size_t>(info_.channels);
    float* target = mono.data() + (begin - first);
    for (size_t i = 0; i < frames.size(); i += channels) {
      float sum = 0;
      for (size_t channel = 0; channel < channels; ++channel) sum += frames[i + channel];
      require(std::isfinite(sum), ErrorCode::invalid_file, "{}: holds what is no number", name);
      *target++ = sum / static_cast<float>(channels);
    }
    return mono;
  }

 private:
  struct Close {
    void operator()(SNDFILE* file) const { sf_close(file); }
  };

  // What libsndfile reads through.
  static sf_count_t length(void* user) { return std::ssize(static_cast<Reader*>(user)->bytes_); }
  static sf_count_t tell(void* user) { return static_cast<Reader*>(user)->place_; }
  static sf_count_t write(const void* /*source*/, sf_count_t /*count*/, void* /*user*/) { return 0; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    auto& reader = *static_cast<Reader*>(user);
    const sf_count_t end = length(user);
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? reader.place_ : end;
    if (offset < -from || offset > end - from) return -1;
    return reader.place_ = from + offset;
  }
  static sf_count_t take(void* target, sf_count_t count, void* user) {
    auto& reader = *static_cast<Reader*>(user);
    const sf_count_t taken = std::clamp<sf_count_t>(count, 0, length(user) - reader.place_);
    if (taken > 0) std::memcpy(target, reader.bytes_.data() + reader.place_, static_cast<size_t>(taken));
    reader.place_ += taken;
    return taken;
  }

  std::span<const std::byte> bytes_;
  sf_count_t place_ = 0;
  SoundInfo info_;
  std::unique_ptr<SNDFILE, Close> file_;
};

int16_t to_int16(float sample) {
  constexpr float kFullScale = 32768;
  return static_cast<int16_t>(std::clamp(std::nearbyint(sample * kFullScale), -kFullScale, kFullScale - 1));
}

EncodedSound::EncodedSound(std::span<const std::byte> bytes, const std::string& name,
                           const SoundLimits& limits)
    : name_(name), reader_(std::make_unique<Reader>(bytes, name, limits)) {}

EncodedSound::EncodedSound(EncodedSound&&) noexcept = default;
EncodedSound& EncodedSound::operator=(EncodedSound&&) noexcept = default;
EncodedSound::~EncodedSound() = default;

const SoundInfo& EncodedSound::info() const {
  return reader_->info();
}

int64_t EncodedSound::frames_at(int64_t rate) const {
  require(is_rate(rate), ErrorCode::invalid_argument, "{} samples a second, expected {} to {}", rate,
          kLowestRate, kHighestRate);
  return (info().frames * rate + info().rate - 1) / info().rate;
}

void EncodedSound::decode(int64_t rate, int64_t first, std::span<float> samples) {
  const int64_t own = info().rate;
  const int64_t count = std::ssize(samples);
  require(first >= 0 && first <= frames_at(rate) && count <= frames_at(rate) - first,
          ErrorCode::invalid_argument, "{}: frames {} to {} of {}", name_, first, first + count,
          frames_at(rate));
  if (count == 0) return;
  if (own == rate) {
    std::ranges::copy(reader_->read(first, count, name_), samples.begin());
    return;
  }
  // Both rates have a frame at the same moment every so many: a part begins there, so that its samples are at
  // the moments of the whole's.
  const int64_t together = std::gcd(own, rate);
  const int64_t own_step = own / together;
  const int64_t step = rate / together;
  const int64_t margin = (kMargin + std::min(own_step, step) - 1) / std::min(own_step, step);
  const int64_t begin = first / step - margin;
  const int64_t steps = (first + count) / step + 1 + margin - begin;
  const std::vector<float> source = reader_->read(begin * own_step, steps * own_step, name_);
  std::vector<float> resampled(static_cast<size_t>(steps * step));
  size_t made = 0;
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_error_t error =
      soxr_oneshot(static_cast<double>(own), static_cast<double>(rate), 1, source.data(), source.size(),
                   nullptr, resampled.data(), resampled.size(), &made, nullptr, &quality, nullptr);
  require(error == nullptr && made + 1 >= resampled.size(), ErrorCode::internal,
          "{}: from {} to {} samples a second: {}", name_, own, rate, error != nullptr ? error : "too few");
  const auto skipped = static_cast<size_t>(first - begin * step);
  std::copy_n(resampled.begin() + static_cast<std::ptrdiff_t>(skipped), count, samples.begin());
}

}  // namespace tessera::data
