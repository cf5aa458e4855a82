#include "tessera/nn/sound_augmentation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/ops/functions.h"

#include "nn/draws.h"

namespace tessera::nn {
namespace {

constexpr double kFullScale = 32768;  // of int16
constexpr int64_t kMostRate = 1000;   // as many filters, each of as many samples
constexpr double kZeros = 6;
constexpr double kRolloff = 0.99;
constexpr double kLeastEnergy = 1e-20;  // keeps the noise of nothing from being divided by 0
constexpr int64_t kMostSpeeds = 16;

struct Rates {
  int64_t from;
  int64_t to;
};

Rates reduced(int64_t from, int64_t to) {
  const auto code = ErrorCode::invalid_argument;
  require(from > 0 && to > 0, code, "resampling from {} to {} samples a second", from, to);
  const int64_t divisor = std::gcd(from, to);
  require(std::max(from, to) / divisor <= kMostRate, code,
          "resampling from {} to {} samples a second needs filters for {} places, expected up to {}", from,
          to, std::max(from, to) / divisor, kMostRate);
  return {from / divisor, to / divisor};
}

double cutoff_of(const Rates& rates) {
  return static_cast<double>(std::min(rates.from, rates.to)) * kRolloff;
}

// Samples on each side that a filter looks at.
int64_t width_of(const Rates& rates) {
  return static_cast<int64_t>(std::ceil(kZeros * static_cast<double>(rates.from) / cutoff_of(rates)));
}

// [to, taps, 1]: one filter for each place of a new sample between the old ones.
Tensor sinc_filters(const Rates& rates) {
  const int64_t width = width_of(rates);
  const int64_t taps = 2 * width + rates.from;
  const double cutoff = cutoff_of(rates);
  Tensor filters(DataType::fp32, {rates.to, taps, 1});
  for (int64_t place = 0; place < rates.to; ++place) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      const double offset = static_cast<double>(tap - width) / static_cast<double>(rates.from) -
                            static_cast<double>(place) / static_cast<double>(rates.to);
      const double time = std::clamp(offset * cutoff, -kZeros, kZeros);
      const double window = std::pow(std::cos(time * std::numbers::pi / kZeros / 2), 2);
      const double angle = time * std::numbers::pi;
      const double sinc = angle == 0 ? 1 : std::sin(angle) / angle;
      filters.set(place * taps + tap, sinc * window * cutoff / static_cast<double>(rates.from));
    }
  }
  return filters;
}

void require_sounds(Value* sounds) {
  require(sounds->type().rank() == 3, ErrorCode::invalid_graph,
          "sounds of shape {}, expected [batch, steps, hop]", to_string(sounds->shape()));
}

ops::Expression full_scale(Value* sounds) {
  require_sounds(sounds);
  const ops::Expression samples = ops::cast(sounds, DataType::fp32);
  return sounds->data_type() == DataType::int16 ? samples * (1 / kFullScale) : samples;
}

Dimension samples_of(Value* sounds) {
  return sounds->shape()[1] * sounds->shape()[2];
}

// int32, the number of samples of a row, which may be a symbol.
Value* row_length(Value* sounds) {
  return ops::count_elements(sounds->graph(), {samples_of(sounds)}, DataType::int32);
}

// The number of samples that so many become, rounded up, without a product that int32 does not hold.
ops::Expression scaled_lengths(Value* lengths, const Rates& rates) {
  const auto number = [&](int64_t value) { return ops::constant_like(lengths, static_cast<double>(value)); };
  const ops::Expression whole = ops::divide(lengths, number(rates.from));
  const ops::Expression rest = ops::Expression(lengths) - whole * number(rates.from);
  return whole * number(rates.to) +
         ops::divide(rest * number(rates.to) + number(rates.from - 1), number(rates.from));
}

// fp32 [batch, steps, hop], 1 at samples of the sound.
ops::Expression sounding_samples(Value* sounds, Value* lengths) {
  const SymbolicShape& shape = sounds->shape();
  Value* place = ops::iota(sounds->graph(), {1, samples_of(sounds)}, 1, DataType::int32);
  Value* sounding = ops::less(place, ops::reshape(lengths, {shape[0], 1}));
  return ops::reshape(ops::cast(sounding, DataType::fp32), shape);
}

// fp32 [batch, 1, 1].
ops::Expression of_rows(Value* numbers) {
  return ops::reshape(numbers, {numbers->shape()[0], 1, 1});
}

ops::Expression energy(Value* sounds, Value* sounding) {
  return ops::reduce_sum(ops::square(ops::Expression(sounds) * sounding),
                         {.axes = {1, 2}, .keep_dimensions = true});
}

AugmentedSounds at_random_speeds(Draws& draws, AugmentedSounds given, const std::vector<double>& speeds) {
  Value* chosen = ops::floor(ops::multiply(draws.uniform(), static_cast<double>(speeds.size())));
  AugmentedSounds made = {full_scale(given.sounds), given.lengths};
  for (size_t i = 0; i < speeds.size(); ++i) {
    const auto hundredths = static_cast<int64_t>(std::lround(100 * speeds[i]));
    if (hundredths == 100) continue;
    Value* here = ops::equal(chosen, ops::constant_like(chosen, static_cast<double>(i)));
    made = {ops::select(of_rows(here), resample(given.sounds, hundredths, 100), made.sounds),
            ops::select(here, resampled_lengths(given.lengths, given.sounds, hundredths, 100), made.lengths)};
  }
  return made;
}

Value* with_noise(Context& context, Draws& draws, const AugmentedSounds& sounds,
                  const SoundAugmentation& options) {
  const auto scope = context.scope("augmentation");
  Value* noise = context.own_rows(ops::random_normal(
      context.random_counter(), context.whole_batch(sounds.sounds->shape()), context.next_random_stream()));
  Value* noisy = add_noise(sounds.sounds, noise, draws.between(options.least_decibels, options.most_decibels),
                           sounds.lengths);
  return ops::select(of_rows(draws.happens(options.noise)), noisy, full_scale(sounds.sounds));
}

}  // namespace

void check_sound_augmentation(const SoundAugmentation& options) {
  const auto code = ErrorCode::invalid_argument;
  require(!options.speeds.empty() && std::ssize(options.speeds) <= kMostSpeeds, code,
          "{} speeds, expected 1 to {}", options.speeds.size(), kMostSpeeds);
  for (const double speed : options.speeds) {
    require(speed >= 0.5 && speed <= 2, code, "a speed of {}, expected 0.5 to 2", speed);
    require(std::abs(100 * speed - std::round(100 * speed)) < 1e-6, code,
            "a speed of {}, expected hundredths", speed);
  }
  require(options.noise >= 0 && options.noise <= 1, code, "noise with probability {}, expected 0 to 1",
          options.noise);
  require(options.least_decibels >= -100 && options.least_decibels <= options.most_decibels &&
              options.most_decibels <= 100,
          code, "noise from {} to {} decibels below the sound, expected them to rise between -100 and 100",
          options.least_decibels, options.most_decibels);
}

ops::Expression resample(Value* sounds, int64_t from, int64_t to) {
  require_sounds(sounds);
  const Rates rates = reduced(from, to);
  const SymbolicShape& shape = sounds->shape();
  const Dimension samples = samples_of(sounds);
  const int64_t width = width_of(rates);
  Value* row = ops::reshape(full_scale(sounds), {shape[0], samples, 1});
  Value* filters = ops::constant(sounds->graph(), sinc_filters(rates));
  // [batch, samples / from + 1, to]: in the order of time.
  Value* parts = ops::convolution(
      row, filters, {.strides = {rates.from}, .padding_low = {width}, .padding_high = {width + rates.from}});
  const Dimension made = parts->shape()[1] * rates.to;
  Value* place = ops::iota(sounds->graph(), {samples}, 0, DataType::int32);
  Value* end = scaled_lengths(row_length(sounds), rates);
  Value* last = ops::subtract(ops::count_elements(sounds->graph(), {made}, DataType::int32),
                              ops::constant_like(place, 1));
  const ops::Expression in_row =
      ops::gather(ops::reshape(parts, {shape[0], made}), ops::minimum(place, last), 1);
  return ops::reshape(in_row * ops::cast(ops::less(place, end), DataType::fp32), shape);
}

ops::Expression resampled_lengths(Value* lengths, Value* sounds, int64_t from, int64_t to) {
  require_sounds(sounds);
  return ops::minimum(scaled_lengths(lengths, reduced(from, to)), row_length(sounds));
}

ops::Expression add_noise(Value* sounds, Value* noise, Value* decibels, Value* lengths) {
  const ops::Expression samples = full_scale(sounds);
  Value* sounding = sounding_samples(sounds, lengths);
  const ops::Expression of_noise = energy(noise, sounding) + kLeastEnergy;
  // 10^(-decibels / 20)
  const ops::Expression share = ops::exp(ops::multiply(of_rows(decibels), -std::numbers::ln10 / 20));
  const ops::Expression scale = share * ops::sqrt(energy(samples, sounding) / of_noise);
  return samples + scale * noise * sounding;
}

AugmentedSounds augment_sounds(Context& context, Value* sounds, Value* lengths,
                               const SoundAugmentation& options) {
  check_sound_augmentation(options);
  const bool has_speeds = std::ranges::any_of(options.speeds, [](double speed) { return speed != 1; });
  AugmentedSounds made = {sounds, lengths};
  if (!has_speeds && options.noise == 0) return made;
  Draws draws(context, sounds->shape()[0], 3);
  if (has_speeds) made = at_random_speeds(draws, made, options.speeds);
  if (options.noise > 0) made.sounds = with_noise(context, draws, made, options);
  return made;
}

}  // namespace tessera::nn
