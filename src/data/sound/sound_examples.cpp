#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/parallel.h"
#include "tessera/base/random.h"
#include "tessera/data/sounds.h"

#include "data/batches.h"

namespace tessera::data {
namespace {

// Places among the fields.
constexpr size_t kSounds = 0;
constexpr size_t kLengths = 1;
constexpr size_t kLabels = 2;

constexpr size_t kMostBuckets = 64;
constexpr double kLongestSeconds = 3600;

std::vector<int64_t> steps_of(const SoundExampleOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  require(options.rate > 0 && options.hop > 0, code, "{} samples a second in steps of {}", options.rate,
          options.hop);
  require(!options.seconds.empty() && options.seconds.size() <= kMostBuckets, code,
          "rows of {} lengths, expected 1 to {}", options.seconds.size(), kMostBuckets);
  std::vector<int64_t> steps;
  for (const double seconds : options.seconds) {
    require(seconds > 0 && seconds <= kLongestSeconds, code, "rows of {} seconds, expected up to {}", seconds,
            kLongestSeconds);
    steps.push_back(static_cast<int64_t>(
        std::ceil(seconds * static_cast<double>(options.rate) / static_cast<double>(options.hop))));
    require(steps.size() == 1 || steps.back() > steps[steps.size() - 2], code,
            "rows of {} seconds do not follow on shorter ones", seconds);
  }
  return steps;
}

// Of the first bucket that holds so many samples, or of the last.
uint8_t bucket_for(int64_t samples, const std::vector<int64_t>& steps, int64_t hop) {
  const auto place = std::ranges::find_if(steps, [&](int64_t length) { return samples <= length * hop; });
  return static_cast<uint8_t>(std::min<ptrdiff_t>(place - steps.begin(), std::ssize(steps) - 1));
}

}  // namespace

SoundExamples::SoundExamples(std::shared_ptr<const EncodedSamples> samples,
                             const SoundExampleOptions& options)
    : samples_(std::move(samples)),
      options_(options),
      steps_(steps_of(options)),
      broken_(options.broken, samples_ ? samples_->size() : 0) {
  require(samples_ != nullptr && samples_->size() > 0, ErrorCode::invalid_argument,
          "a data set of no sounds");
  if (steps_.size() == 1) return;
  // What cannot be read is told of where it would be used.
  buckets_.resize(static_cast<size_t>(samples_->size()));
  for_each_in_parallel(samples_->size(), [&](int64_t index) {
    try {
      buckets_[static_cast<size_t>(index)] = bucket_for(length_of(index), steps_, options_.hop);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_file && error.code() != ErrorCode::io) throw;
    }
  });
}

// In samples at the examples' rate, rounded up, by what is known of it or its header.
int64_t SoundExamples::length_of(int64_t index) const {
  constexpr double kRounding = 1e-7;  // of a double; no rate makes a smaller part of a sample
  if (const std::optional<double> seconds = samples_->seconds(index))
    return static_cast<int64_t>(std::ceil(*seconds * static_cast<double>(options_.rate) - kRounding));
  const std::vector<std::byte> bytes = samples_->bytes(index);
  return EncodedSound(bytes, samples_->name(index), options_.limits).frames_at(options_.rate);
}

std::vector<Field> SoundExamples::fields() const {
  const Dimension batch = Dimension::symbol(kBatch);
  return {{"sounds", {DataType::int16, {batch, Dimension::symbol("steps"), options_.hop}}},
          {"lengths", {DataType::int32, {batch}}},
          {"labels", {DataType::int32, {batch}}}};
}

std::vector<SymbolBindings> SoundExamples::buckets() const {
  std::vector<SymbolBindings> buckets;
  for (const int64_t steps : steps_) buckets.push_back({{"steps", steps}});
  return buckets;
}

int64_t SoundExamples::bucket_of(int64_t index) const {
  return buckets_.empty() ? 0 : buckets_[static_cast<size_t>(index)];
}

void SoundExamples::read(int64_t index, const RandomView& view, const ExampleRow& row) const {
  const bool was_read = broken_.read(index, [&](int64_t candidate) {
    const int64_t length = decode(candidate, view, elements_of<int16_t>(row, kSounds));
    elements_of<int32_t>(row, kLengths).front() = static_cast<int32_t>(length);
    elements_of<int32_t>(row, kLabels).front() = samples_->label(candidate);
  });
  if (!was_read) fill(row);
}

void SoundExamples::fill(const ExampleRow& row) const {
  Examples::fill(row);
  elements_of<int32_t>(row, kLabels).front() = -1;
}

// How many samples of the target the sound takes.
int64_t SoundExamples::decode(int64_t index, const RandomView& view, std::span<int16_t> target) const {
  const std::vector<std::byte> bytes = samples_->bytes(index);
  EncodedSound sound(bytes, samples_->name(index), options_.limits);
  const int64_t whole = sound.frames_at(options_.rate);
  const int64_t length = std::min(whole, std::ssize(target));
  int64_t first = (whole - length) / 2;
  if (options_.random) {
    const Random random(view.seed ^ hash_name("sound", 5), view.epoch);
    first = static_cast<int64_t>(
        random.below(static_cast<uint64_t>(index), static_cast<uint64_t>(whole - length + 1)));
  }
  std::vector<float> samples(static_cast<size_t>(length));
  sound.decode(options_.rate, first, samples);
  std::ranges::transform(samples, target.begin(), to_int16);
  std::ranges::fill(target.subspan(static_cast<size_t>(length)), int16_t{0});
  return length;
}

std::vector<std::string> SoundExamples::remarks() const {
  return broken_.remarks();
}

}  // namespace tessera::data
