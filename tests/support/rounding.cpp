#include "support/rounding.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace tessera::testing {
namespace {

struct Format {
  int digits;        // of the significand, the hidden one included
  int least_normal;  // its exponent
  double largest;
};

Format format_of(DataType type) {
  if (type == DataType::fp16) return {11, -14, 65504};
  return {8, -126, std::ldexp(255.0, 120)};
}

// The unit in the last place of the binade, or 0 where numbers are subnormal or overflow.
double unit_of(double exact, const Format& format) {
  if (!std::isfinite(exact) || exact == 0 || std::abs(exact) > format.largest) return 0;
  const int exponent = std::ilogb(exact);
  return exponent < format.least_normal ? 0 : std::ldexp(1.0, exponent - format.digits + 1);
}

}  // namespace

RoundingErrors rounding_errors(const Tensor& actual, const Tensor& exact) {
  RoundingErrors errors;
  if (!is_half(actual.data_type())) return errors;
  const Format format = format_of(actual.data_type());
  const std::vector<double> own = actual.to_doubles(), wanted = exact.to_doubles();
  for (size_t i = 0; i < own.size(); ++i) {
    const double value = wanted[i];
    const double unit = unit_of(value, format);
    if (unit == 0 || std::trunc(value / unit) == value / unit) continue;
    const double error = (own[i] - value) / unit;
    if (!(std::abs(error) <= 1)) continue;
    ++errors.elements;
    errors.of_number += error;
    errors.of_magnitude += value < 0 ? -error : error;
  }
  if (errors.elements == 0) return errors;
  errors.of_number /= static_cast<double>(errors.elements);
  errors.of_magnitude /= static_cast<double>(errors.elements);
  return errors;
}

::testing::AssertionResult is_rounded_to_nearest(const Tensor& actual, const Tensor& exact) {
  constexpr double kLimit = 0.25;
  const RoundingErrors errors = rounding_errors(actual, exact);
  if (errors.elements < kFewestRounded ||
      (std::abs(errors.of_magnitude) <= kLimit && std::abs(errors.of_number) <= kLimit)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << fmt::format(
             "{} elements of {}{} are not rounded to nearest: they are off by {:.3g} units in the last place "
             "of their magnitude and {:.3g} of the number on average, where {} are allowed",
             errors.elements, to_string(actual.data_type()), to_string(actual.shape()), errors.of_magnitude,
             errors.of_number, kLimit);
}

Tensor truncated(const Tensor& exact, DataType type) {
  const Format format = format_of(type);
  Tensor result = exact.cast(type);
  const std::vector<double> values = exact.to_doubles();
  for (size_t i = 0; i < values.size(); ++i) {
    const double unit = unit_of(values[i], format);
    if (unit != 0) result.set(static_cast<int64_t>(i), std::trunc(values[i] / unit) * unit);
  }
  return result;
}

}  // namespace tessera::testing
