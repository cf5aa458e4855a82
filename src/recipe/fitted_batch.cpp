#include "recipe/fitted_batch.h"

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"

namespace tessera::recipe {
namespace {

constexpr int64_t kAligned = 8;        // rows of which Tensor Cores take as many at once
constexpr int64_t kAffordable = 1000;  // one part in so many may be left out for them

}  // namespace

FittedBatch epoch_of(int64_t samples, int64_t batch, int64_t accumulate) {
  const int64_t update = batch * accumulate;
  return {.batch = batch, .steps = samples / update, .left_out = samples % update};
}

FittedBatch fit_batch(int64_t samples, int64_t most, int64_t accumulate, int64_t ranks) {
  const int64_t largest_update = most * accumulate;
  const int64_t steps = quotient_rounded_up(samples, largest_update);
  const int64_t rows = steps == 0 ? 0 : samples / (steps * accumulate * ranks);  // of a rank's batch
  require(rows > 0, ErrorCode::invalid_argument,
          "{} samples in updates of {} batches of at most {} leave some of {} ranks without any: raise "
          "train.batch or lower train.accumulate",
          samples, accumulate, most, ranks);
  const FittedBatch plain = epoch_of(samples, rows * ranks, accumulate);
  FittedBatch fitted = plain;
  if (rows >= kAligned) {
    const FittedBatch aligned = epoch_of(samples, rows / kAligned * kAligned * ranks, accumulate);
    if (aligned.steps == plain.steps && aligned.left_out * kAffordable < samples) fitted = aligned;
  }
  if (most % ranks != 0 || largest_update > samples) return fitted;
  const FittedBatch asked = epoch_of(samples, most, accumulate);
  return asked.left_out <= fitted.left_out ? asked : fitted;
}

std::string describe(const FittedBatch& fitted, int64_t most, const std::string& samples) {
  return fmt::format("batch {} -> {}: {} updates in an epoch, {} {} of which are left out", most,
                     fitted.batch, fitted.steps, fitted.left_out, samples);
}

}  // namespace tessera::recipe
