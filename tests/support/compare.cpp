#include "support/compare.h"

#include <cmath>
#include <limits>

namespace tessera::testing {

double excess(double actual, double expected, const Tolerance& tolerance) {
  if (std::isnan(actual) || std::isnan(expected) || std::isinf(actual) || std::isinf(expected)) {
    const bool same = actual == expected || (std::isnan(actual) && std::isnan(expected));
    return same ? 0 : std::numeric_limits<double>::infinity();
  }
  const double difference = std::abs(actual - expected);
  const double allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  if (difference == 0) return 0;
  return allowed == 0 ? std::numeric_limits<double>::infinity() : difference / allowed;
}

std::string index_text(int64_t element, const Shape& shape) {
  Shape index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return to_string(index);
}

::testing::AssertionResult is_close(const Tensor& actual, std::span<const double> expected,
                                    const Tolerance& tolerance) {
  if (actual.size() != static_cast<int64_t>(expected.size())) {
    return ::testing::AssertionFailure() << fmt::format("{} elements of shape {}, expected {}", actual.size(),
                                                        to_string(actual.shape()), expected.size());
  }
  const std::vector<double> own = actual.to_doubles();
  double worst = 0;
  int64_t place = 0;
  int64_t wrong = 0;
  for (int64_t i = 0; i < actual.size(); ++i) {
    const double ratio = excess(own[static_cast<size_t>(i)], expected[static_cast<size_t>(i)], tolerance);
    wrong += ratio > 1 ? 1 : 0;
    if (ratio > worst) {
      worst = ratio;
      place = i;
    }
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  const double a = own[static_cast<size_t>(place)];
  const double e = expected[static_cast<size_t>(place)];
  return ::testing::AssertionFailure() << fmt::format(
             "{} of {} elements of {}{} are off; the worst at {}: {:.9g}, expected {:.9g}, difference "
             "{:.3g} is {:.3g} times what absolute {:.3g} and relative {:.3g} allow",
             wrong, actual.size(), to_string(actual.data_type()), to_string(actual.shape()),
             index_text(place, actual.shape()), a, e, std::abs(a - e), worst, tolerance.absolute,
             tolerance.relative);
}

::testing::AssertionResult is_close(const Tensor& actual, const Tensor& expected,
                                    const Tolerance& tolerance) {
  if (actual.data_type() != expected.data_type() || actual.shape() != expected.shape()) {
    return ::testing::AssertionFailure()
           << fmt::format("{}{}, expected {}{}", to_string(actual.data_type()), to_string(actual.shape()),
                          to_string(expected.data_type()), to_string(expected.shape()));
  }
  return is_close(actual, expected.to_doubles(), tolerance);
}

}  // namespace tessera::testing
