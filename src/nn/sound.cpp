#include "tessera/nn/sound.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "nn/draws.h"

namespace tessera::nn {
namespace {

constexpr int64_t kLongestTransform = 1 << 14;
constexpr int64_t kMostBands = 1024;
constexpr double kFullScale = 32768;  // of int16
constexpr double kLeastVariance = 1e-5;

double mel_of(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}

double hertz_of(double mel) {
  return 700 * (std::pow(10, mel / 2595) - 1);
}

struct Taps {
  int64_t before;  // steps before its own that a frame looks at
  int64_t count;
};

// Samples of the window before the middle of the transform, in which it has zeros around it.
int64_t samples_before(const SpectrogramOptions& options) {
  return options.transform / 2 - (options.transform - options.window) / 2;
}

Taps taps_of(const SpectrogramOptions& options, int64_t hop) {
  const int64_t half = samples_before(options);
  const int64_t before = (half + hop - 1) / hop;
  return {before, before + (options.window - half + hop - 1) / hop};
}

// [2 * frequencies, taps, hop]: the window times cosines, and then sines.
Tensor fourier_filters(const SpectrogramOptions& options, int64_t hop) {
  const Taps taps = taps_of(options, hop);
  const int64_t frequencies = options.transform / 2 + 1;
  Tensor filters(DataType::fp32, {2 * frequencies, taps.count, hop});
  const std::span<float> weights = filters.data<float>();
  const int64_t samples = taps.count * hop;
  for (int64_t place = 0; place < samples; ++place) {
    const int64_t offset = place - taps.before * hop;  // from the middle of the transform
    const int64_t in_window = offset + samples_before(options);
    if (in_window < 0 || in_window >= options.window) continue;
    const double hann = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(in_window) /
                                             static_cast<double>(options.window));
    for (int64_t frequency = 0; frequency < frequencies; ++frequency) {
      const double angle = 2 * std::numbers::pi *
                           static_cast<double>(frequency * offset % options.transform) /
                           static_cast<double>(options.transform);
      weights[static_cast<size_t>(frequency * samples + place)] = static_cast<float>(hann * std::cos(angle));
      weights[static_cast<size_t>((frequencies + frequency) * samples + place)] =
          static_cast<float>(hann * std::sin(angle));
    }
  }
  return filters;
}

// fp32 scalar: the extent, which may be a symbol.
Value* extent_value(Graph& graph, const Dimension& extent) {
  return ops::Expression(ops::reduce_max(ops::iota(graph, {extent}, 0, DataType::fp32))) + 1;
}

// 0 in a stretch of axis `axis` (1 or 2) of each row, 1 elsewhere. `longest` is a number of places.
Value* outside_of_a_stretch(Draws& draws, Value* spectrogram, int64_t axis, Value* longest) {
  const Dimension& batch = spectrogram->shape()[0];
  const Dimension& extent = spectrogram->shape()[static_cast<size_t>(axis)];
  Value* length = ops::floor(ops::Expression(draws.uniform()) * (ops::Expression(longest) + 1));
  const ops::Expression room = ops::Expression(extent_value(spectrogram->graph(), extent)) - length + 1;
  Value* start = ops::floor(ops::Expression(draws.uniform()) * room);
  const auto of_rows = [&](Value* numbers) { return ops::reshape(numbers, {batch, 1, 1}); };
  SymbolicShape along{1, 1, 1};
  along[static_cast<size_t>(axis)] = extent;
  Value* place = ops::iota(spectrogram->graph(), along, axis, DataType::fp32);
  Value* before = ops::less(place, of_rows(start));
  Value* after = ops::greater_equal(place, of_rows(ops::Expression(start) + length));
  return ops::cast(ops::logical_or(before, after), DataType::fp32);
}

}  // namespace

void check_spectrogram(const SpectrogramOptions& options, int64_t hop) {
  const auto code = ErrorCode::invalid_argument;
  require(options.rate > 0 && hop > 0, code, "a spectrogram of {} samples a second in steps of {}",
          options.rate, hop);
  require(options.window > 0 && options.window <= options.transform, code,
          "a window of {} samples for a transform of {}", options.window, options.transform);
  require(options.transform % 2 == 0 && options.transform <= kLongestTransform, code,
          "a transform of {}, expected an even number up to {}", options.transform, kLongestTransform);
  require(options.bands > 0 && options.bands <= kMostBands, code, "{} bands, expected 1 to {}", options.bands,
          kMostBands);
  require(options.lowest >= 0 && options.lowest < options.highest &&
              2 * options.highest <= static_cast<double>(options.rate),
          code,
          "bands from {} to {} Hz of {} samples a second: expected them to rise to half of that at most",
          options.lowest, options.highest, options.rate);
  require(options.floor > 0, code, "a floor of {}, it must be positive", options.floor);
}

ops::Expression power_spectrogram(Value* sounds, const SpectrogramOptions& options) {
  require(sounds->type().rank() == 3, ErrorCode::invalid_graph,
          "sounds of shape {}, expected [batch, steps, hop]", to_string(sounds->shape()));
  const int64_t hop = sounds->shape()[2].value();
  check_spectrogram(options, hop);
  const Taps taps = taps_of(options, hop);
  ops::Expression samples = ops::cast(sounds, DataType::fp32);
  if (sounds->data_type() == DataType::int16) samples = samples * (1 / kFullScale);
  Value* filters = ops::constant(sounds->graph(), fourier_filters(options, hop));
  Value* parts = ops::convolution(
      samples, filters, {.padding_low = {taps.before}, .padding_high = {taps.count - taps.before - 1}});
  const int64_t frequencies = options.transform / 2 + 1;
  const std::vector<Value*> halves = ops::split(parts, {frequencies, frequencies}, 2);
  return ops::Expression(ops::square(halves[0])) + ops::square(halves[1]);
}

Tensor mel_bands(const SpectrogramOptions& options) {
  const int64_t frequencies = options.transform / 2 + 1;
  const double lowest = mel_of(options.lowest);
  const double width = (mel_of(options.highest) - lowest) / static_cast<double>(options.bands + 1);
  const auto edge = [&](int64_t i) { return hertz_of(lowest + width * static_cast<double>(i)); };
  Tensor bands(DataType::fp32, {frequencies, options.bands});
  for (int64_t frequency = 0; frequency < frequencies; ++frequency) {
    const double hertz =
        static_cast<double>(frequency * options.rate) / static_cast<double>(options.transform);
    for (int64_t band = 0; band < options.bands; ++band) {
      const double rising = (hertz - edge(band)) / (edge(band + 1) - edge(band));
      const double falling = (edge(band + 2) - hertz) / (edge(band + 2) - edge(band + 1));
      bands.set(frequency * options.bands + band, std::max(0.0, std::min(rising, falling)));
    }
  }
  return bands;
}

ops::Expression log_mel_spectrogram(Value* sounds, const SpectrogramOptions& options) {
  Value* power = power_spectrogram(sounds, options);
  Value* bands = ops::constant(sounds->graph(), mel_bands(options));
  return ops::log(ops::Expression(ops::matmul(power, bands)) + options.floor);
}

ops::Expression sounding_frames(Value* lengths, Value* sounds) {
  const Dimension& steps = sounds->shape()[1];
  ops::Expression first = ops::iota(lengths->graph(), {1, steps}, 1, DataType::int32);
  first = first * sounds->shape()[2].value();
  return ops::cast(ops::less(first, ops::reshape(lengths, {lengths->shape()[0], 1})), DataType::int32);
}

ops::Expression normalize_bands(Value* spectrogram, Value* frames) {
  const Dimension& steps = spectrogram->shape()[1];
  Value* sounds =
      ops::cast(ops::reshape(frames, {spectrogram->shape()[0], steps, 1}), spectrogram->data_type());
  const auto over_time = [](Value* x) {
    return ops::Expression(ops::reduce_sum(x, {.axes = {1}, .keep_dimensions = true}));
  };
  Value* count = over_time(sounds);
  count = ops::maximum(count, ops::constant_like(count, 1));
  Value* mean = over_time(ops::Expression(spectrogram) * sounds) / count;
  const ops::Expression centered = (ops::Expression(spectrogram) - mean) * sounds;
  Value* variance = over_time(ops::square(centered)) / count;
  return centered * ops::rsqrt(ops::Expression(variance) + kLeastVariance);
}

ops::Expression mask_spectrogram(Context& context, Value* spectrogram, const SpectrogramMasks& masks) {
  const int64_t bands = spectrogram->shape()[2].value();
  constexpr int64_t kMost = 64;
  const auto code = ErrorCode::invalid_argument;
  require(masks.band_masks >= 0 && masks.band_masks <= kMost && masks.time_masks >= 0 &&
              masks.time_masks <= kMost,
          code, "{} masks of bands and {} of time, expected up to {}", masks.band_masks, masks.time_masks,
          kMost);
  require(masks.widest_bands >= 0 && masks.widest_bands <= bands, code, "masks of up to {} of {} bands",
          masks.widest_bands, bands);
  require(masks.longest_share >= 0 && masks.longest_share <= 1, code,
          "masks of up to {} of a row's steps, expected 0 to 1", masks.longest_share);
  if (masks.band_masks + masks.time_masks == 0) return spectrogram;
  Draws draws(context, spectrogram->shape()[0], 2 * (masks.band_masks + masks.time_masks));
  ops::Expression masked = spectrogram;
  Value* steps = extent_value(context.graph(), spectrogram->shape()[1]);
  Value* widest = ops::constant_like(steps, static_cast<double>(masks.widest_bands));
  Value* longest = ops::floor(ops::Expression(steps) * masks.longest_share);
  for (int64_t i = 0; i < masks.band_masks; ++i)
    masked = masked * outside_of_a_stretch(draws, spectrogram, 2, widest);
  for (int64_t i = 0; i < masks.time_masks; ++i)
    masked = masked * outside_of_a_stretch(draws, spectrogram, 1, longest);
  return masked;
}

}  // namespace tessera::nn
