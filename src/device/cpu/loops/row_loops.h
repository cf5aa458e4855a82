// Loops over one row for softmax, cross-entropy and rotary positions, in fp32 and fp64. Sums are kept in
// short runs of the type, then in double.
#pragma once

#include <cstdint>

namespace tessera::cpu {

template <typename T>
struct RowLoops {
  // The largest of n > 0 elements; NaN when one is NaN.
  T (*maximum)(const T* x, int64_t n);
  // Sum of e^(x[i] - shift); `out` takes the terms unless it is null. It may be x.
  double (*exponentials)(const T* x, T shift, T* out, int64_t n);
  // out[i] = x[i] * factor + offset; out may be x.
  void (*affine)(const T* x, T factor, T offset, T* out, int64_t n);
  // out[i] = (x[i] - first) - second; out may be x.
  void (*subtract)(const T* x, T first, T second, T* out, int64_t n);
  // The pairs of first[i] and second[i], rotated by angles; the results may be the operands.
  void (*rotate)(const T* first, const T* second, const T* cosines, const T* sines, T* first_out,
                 T* second_out, int64_t n);
};

const RowLoops<float>& row_loops(float);
const RowLoops<double>& row_loops(double);

}  // namespace tessera::cpu
