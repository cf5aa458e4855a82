// Whether 16-bit results were rounded to nearest, which no bound on single elements can tell from truncation.
//
// The error of rounding to nearest is about uniform in [-1/2, 1/2] units in the last place: its mean is 0,
// its variance 1/12. Of truncation (toward zero, or toward minus infinity) the mean is -1/2 unit, of the
// magnitude or of the number. The mean over n elements deviates by 1 / sqrt(12 n): for n = 64, the fewest
// that are looked at, by 0.036, so that a mean of a quarter is seven deviations from either. Ties do not
// matter: to even, half of them go up.
//
// Looked at are the elements whose exact value is no number of the type and from which the result differs by
// at most one unit: where a kernel's own rounding (of sums that cancel, of steps between) is larger, the last
// rounding does not show, and errors of these kinds are symmetric and only widen the distribution.
#pragma once

#include <gtest/gtest.h>

#include "tessera/base/tensor.h"

namespace tessera::testing {

inline constexpr int64_t kFewestRounded = 64;

// Mean errors in units in the last place.
struct RoundingErrors {
  int64_t elements = 0;
  double of_magnitude = 0;  // negative: toward zero
  double of_number = 0;     // negative: toward minus infinity
};

// `exact` is of a wider type. None of the elements are looked at where `actual` is of no 16-bit type.
RoundingErrors rounding_errors(const Tensor& actual, const Tensor& exact);

// Success where fewer elements than kFewestRounded can be looked at.
::testing::AssertionResult is_rounded_to_nearest(const Tensor& actual, const Tensor& exact);

// The exact values cut off toward zero instead of rounded.
Tensor truncated(const Tensor& exact, DataType type);

}  // namespace tessera::testing
