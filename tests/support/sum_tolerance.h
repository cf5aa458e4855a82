// How far sums may be off whose terms a device makes itself, such as the statistics of a convolution's
// result.
//
// A device adds n terms t + e where the reference adds t. With
//   s    the root mean square of the terms
//   e    that of their errors, which are of either sign and independent: roundings to the nearest
//   b    what all errors may have of one sign: Tensor Cores cut sums off
//   p    the part of its term that each error may have besides, of one sign: factors that are cut off
//   a    unit roundoff of fp32, in which a device adds
//   lambda = 4, as in tolerance.h: beyond four deviations is next to nothing
// a sum is off by at most  lambda sqrt(n) e + n b + p |sum|,  and what the additions themselves lose
// (tolerance.h). Not by n e: in bf16 that is more than sums of terms of both signs are, so that zeros would
// pass for them.
//
// A square is off by 2 t e + e^2. Of the first part the sum has the deviation 2 sqrt(sum of t^2 e^2), at most
// 2 sqrt(3 n) s e for terms that are spread normally and errors that grow with them. Squares have one sign,
// so that all is relative to their sum, n s^2:  2 lambda sqrt(3 / n) e / s + (e / s)^2 + 2 b / s + 2 p.
#pragma once

#include "support/tolerance.h"

namespace tessera::testing {

struct SummedTerms {
  int64_t count = 1;        // n
  double size = 1;          // s
  double error = 0;         // e
  double bias = 0;          // b
  double proportional = 0;  // p
};

// Of numbers that tests draw evenly between -limit and limit.
inline double root_mean_square_of_uniform(double limit) {
  return limit / std::sqrt(3.0);
}

inline Tolerance sum_tolerance(const SummedTerms& terms) {
  constexpr double kLambda = 4;
  const auto n = static_cast<double>(terms.count);
  Tolerance result = tolerance_for(OperatorClass::reduction, DataType::fp32,
                                   {.terms = terms.count, .magnitude = terms.size});
  result.absolute += kLambda * std::sqrt(n) * terms.error + n * terms.bias;
  result.relative += terms.proportional;
  return result;
}

inline Tolerance square_sum_tolerance(const SummedTerms& terms) {
  constexpr double kLambda = 4;
  const auto n = static_cast<double>(terms.count);
  const double error = terms.error / terms.size;
  const double additions =
      tolerance_for(OperatorClass::reduction, DataType::fp32, {.terms = terms.count}).relative;
  return {.absolute = 0,
          .relative = 2 * kLambda * std::sqrt(3 / n) * error + error * error + 2 * terms.bias / terms.size +
                      2 * terms.proportional + additions};
}

// What a device does with the last bits of fp32 factors before it multiplies them. 16 bits have none.
enum class Factors {
  exact,    // numbers of TF32
  rounded,  // the first to the nearest number of TF32; the second is one
  cut_off,  // both, as the Tensor Cores do by themselves
};

// The result of a convolution, or of its data gradient.
struct SummedProducts {
  int64_t terms = 1;      // products of one result
  double first_size = 1;  // root mean squares of the factors
  double second_size = 1;
  Factors factors = Factors::exact;

  double size() const { return std::sqrt(static_cast<double>(terms)) * first_size * second_size; }
  // What the accumulators of the Tensor Cores may lose of it (tolerance.h), of one sign.
  double bias() const {
    return tolerance_for(OperatorClass::contraction, DataType::fp32,
                         {.terms = terms, .magnitude = first_size * second_size})
        .absolute;
  }
};

// The sums over `count` such results, rounded to `type` before they are added or not: devices do either.
inline SummedTerms summed_statistics(const SummedProducts& products, DataType type, int64_t count) {
  constexpr double kNearest = 0x1p-11, kCutOff = 0x1p-10;  // of a factor, in parts of it
  const double rounding = is_half(type) ? unit_roundoff(type) : 0;
  const bool cut_off = products.factors == Factors::cut_off;
  const double factors = products.factors == Factors::exact ? 0 : cut_off ? 2 * kCutOff : kNearest;
  return {.count = count,
          .size = products.size(),
          .error = products.size() * (rounding + factors),
          .bias = products.bias(),
          .proportional = cut_off ? 2 * kCutOff : 0};
}

}  // namespace tessera::testing
