// expect_close(actual, expected, tolerance): every element within the tolerance, or a test failure that names
// the worst one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/tensor.h"

#include "support/tolerance.h"

namespace tessera::testing {

// How far beyond the tolerance: at most 1 when inside. NaN equals NaN, an infinity itself.
double excess(double actual, double expected, const Tolerance& tolerance);

// "[1, 0, 3]": the place of an element of a row-major tensor.
std::string index_text(int64_t element, const Shape& shape);

::testing::AssertionResult is_close(const Tensor& actual, std::span<const double> expected,
                                    const Tolerance& tolerance);
::testing::AssertionResult is_close(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// `context` stands before the failure: which case, which device.
inline void expect_close(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                         const std::string& context = "") {
  EXPECT_TRUE(is_close(actual, expected, tolerance)) << context;
}

// Against values that were typed in or made elsewhere.
inline void expect_close(const Tensor& actual, const std::vector<double>& expected,
                         const Tolerance& tolerance, const std::string& context = "") {
  EXPECT_TRUE(is_close(actual, expected, tolerance)) << context;
}

}  // namespace tessera::testing
