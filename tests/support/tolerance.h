// The one table of tolerances: how far a device may be from the reference, by operator class and type.
//
// The reference adds in double, so the difference is the device's rounding and the final rounding of both.
// With
//   u    unit roundoff of the type: fp64 2^-53, fp32 2^-24, fp16 2^-11, bf16 2^-8
//   a    unit roundoff of the sums: as u, but fp32's for 16-bit types, which every device sums in fp32
//   n    how many terms one result sums (the inner extent of a matrix product, the window of a convolution
//   times
//        its channels, the reduced elements); m the largest magnitude of a term
// a sum is off by at most  lambda * sqrt(n) * a * (sum of |terms|)  with a probability that lambda = 4 makes
// overwhelming (Higham and Mary 2019, SIAM J. Sci. Comput. 41(5), A2815). Where the terms have one sign that
// is relative to the result: 4 sqrt(n) a. Where signs cancel, the partial sums are about sqrt(n) m, which
// leaves 4 n a m whatever the result is. What follows a sum (root, exponential, division) is a few roundings
// more.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tessera/graph/operator.h"

namespace tessera::testing {

// |actual - expected| <= absolute + relative * |expected|
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

struct Problem {
  int64_t terms = 1;     // n above
  double magnitude = 1;  // m above; of operators that sum nothing: the largest input or intermediate
};

inline double unit_roundoff(DataType type) {
  switch (type) {
    case DataType::fp64:
      return std::ldexp(1.0, -53);
    case DataType::fp32:
      return std::ldexp(1.0, -24);
    case DataType::fp16:
      return std::ldexp(1.0, -11);
    case DataType::bf16:
      return std::ldexp(1.0, -8);
    default:
      return 0;  // integers and booleans are exact
  }
}

// The spacing of the least numbers: fp16 is the only type whose subnormal numbers tests meet.
inline double least_spacing(DataType type) {
  return type == DataType::fp16 ? std::ldexp(1.0, -24) : 0;
}

inline Tolerance tolerance_for(OperatorClass operator_class, DataType type, const Problem& problem = {}) {
  if (!is_floating(type)) return {};
  const double u = unit_roundoff(type);
  const double a = is_half(type) ? unit_roundoff(DataType::fp32) : u;
  const auto n = static_cast<double>(problem.terms);
  const double m = problem.magnitude;
  // Device and reference each round once to the type, half a unit in the last place, and may fall to
  // different sides.
  const Tolerance rounding{least_spacing(type), 2 * u};
  const Tolerance sum{rounding.absolute + 4 * n * a * m, rounding.relative + 4 * std::sqrt(n) * a};
  switch (operator_class) {
    case OperatorClass::movement:
    case OperatorClass::communication:  // of one rank
    case OperatorClass::control:        // that of its bodies' nodes, beside what it moves
      return {};                        // the same bits
    case OperatorClass::source:
      // Uniform numbers are exact; normal ones take a logarithm, a root and a cosine of 4 units each.
      return {rounding.absolute + 16 * a, rounding.relative + 16 * a};
    case OperatorClass::elementwise:
    case OperatorClass::fused:
      // Vectorized exp, log, erf, tanh are within 4 units; a composite has up to four of them. Some cancel
      // (log near 1, x - mean), which is absolute. 16-bit clusters round once, at the end.
      return {rounding.absolute + 16 * a * m, rounding.relative + 16 * a};
    case OperatorClass::reduction:
    case OperatorClass::contraction:
    case OperatorClass::pooling:
    case OperatorClass::indexing:  // scatter-add; a gather has one term
      return sum;
    case OperatorClass::normalization:
      // Statistics are means of one sign, which leaves 4 sqrt(n) a, and half of it after the root; 16 for the
      // root, the division and what else is multiplied. m is the largest |x - mean| / deviation times scale
      // or, for gradients, that times the largest gradient.
      return {rounding.absolute + (16 + 4 * std::sqrt(n)) * a * m,
              rounding.relative + (16 + 4 * std::sqrt(n)) * a};
    case OperatorClass::loss:
      // Logits of size m and a sum of n exponentials.
      return {rounding.absolute + (16 + 4 * std::sqrt(n)) * a * m,
              rounding.relative + (16 + 4 * std::sqrt(n)) * a};
  }
  return {};
}

// One per output of a node or a graph.
using Tolerances = std::vector<Tolerance>;

namespace detail {

struct Units {
  double final;     // of the result's type
  double sum;       // of what it is computed in
  double absolute;  // the spacing of the least numbers
};

inline Units units_of(DataType type) {
  const double u = unit_roundoff(type);
  return {u, is_half(type) ? unit_roundoff(DataType::fp32) : u, least_spacing(type)};
}

}  // namespace detail

// A sum over n: 4 n a m becomes 4 a m where terms cancel, and 4 sqrt(n) a stays where they have one sign.
inline Tolerance mean_tolerance(DataType type, const Problem& problem) {
  if (!is_floating(type)) return {};
  const auto [u, a, least] = detail::units_of(type);
  return {least + 4 * a * problem.magnitude,
          2 * u + (4 + 4 * std::sqrt(static_cast<double>(problem.terms))) * a};
}

// Every factor brings its own relative rounding error; nothing cancels.
inline Tolerance product_tolerance(DataType type, int64_t factors) {
  if (!is_floating(type)) return {};
  const auto [u, a, least] = detail::units_of(type);
  return {least, 2 * u + (4 + 4 * std::sqrt(static_cast<double>(factors))) * a};
}

// The mean of squares of one sign, or one over its root: both relative. The root halves it, but for the
// 16 of tolerance_for(normalization).
inline Tolerance variance_tolerance(DataType type, int64_t terms) {
  if (!is_floating(type)) return {};
  const auto [u, a, least] = detail::units_of(type);
  return {least, 2 * u + (16 + 4 * std::sqrt(static_cast<double>(terms))) * a};
}

// exp(x - max) / sum: rounding x - max, at most `spread`, by a relative unit moves the exponential by spread
// units, the exponential itself has 4, and the sum has one sign. All of that is relative; in a logarithm of
// it or beside the 1 of the right class, times a factor (1 or the gradient of the loss), it is absolute.
inline Tolerance softmax_tolerance(DataType type, int64_t terms, double spread, double factor) {
  if (!is_floating(type)) return {};
  const auto [u, a, least] = detail::units_of(type);
  const double error = (16 + 4 * std::sqrt(static_cast<double>(terms)) + 2 * spread) * a;
  // Numbers below the least normal one are rounded to its spacing, or to 0.
  const double subnormal = type == DataType::fp64 ? 0 : std::ldexp(1.0, -126);
  return {least + subnormal + error * factor, 2 * u + error};
}

// Of a kernel that says by how much it amplifies rounding errors (KernelCandidate).
inline Tolerance amplified(const Tolerance& direct, double amplification) {
  return {direct.absolute * amplification, direct.relative * amplification};
}

}  // namespace tessera::testing
