// What max and average pooling and their gradients share.
#pragma once

#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/contraction/windows.h"

namespace tessera::ops {

// window, strides, padding_low, padding_high.
std::vector<AttributeSpecification> pool_attribute_list();
// The same and input_shape, of which the gradients are told.
std::vector<AttributeSpecification> pool_gradient_attribute_list();
PoolOptions pool_options(const Attributes& attributes);
WindowOptions pool_windows(const Attributes& attributes);

// [N, spatial..., C] of the result. Throws Error(invalid_graph); padding must be less than the window, so
// that every window sees the image.
SymbolicShape pool_result(const SymbolicShape& x, const Attributes& attributes);

// Work of a pooling operator: one step per element of each window.
double pool_flops(const Shape& result, const Attributes& attributes);

// visit(y, tap, x), row-major indices, for every element of every window that lies inside the image.
template <typename Visit>
void walk_pool(const Shape& x, const Shape& y, const Attributes& attributes, Visit&& visit) {
  const WindowGeometry geometry(x, y, pool_windows(attributes));
  const int64_t channels = x.back();
  for (int64_t n = 0; n < x[0]; ++n) {
    walk_windows(geometry, [&](int64_t result, int64_t tap, int64_t pixel) {
      for (int64_t c = 0; c < channels; ++c) {
        visit(static_cast<size_t>((n * geometry.results() + result) * channels + c), tap,
              static_cast<size_t>((n * geometry.pixels() + pixel) * channels + c));
      }
    });
  }
}

// What each window's sum is divided by: all its elements, or those inside the image.
std::vector<double> average_pool_divisors(const Shape& x, const Shape& y, const Attributes& attributes);

// The cases that all pooling operators are tried on.
struct PoolCase {
  Shape x;
  Attributes attributes;
  Shape result() const { return to_static(pool_result(to_symbolic(x), attributes)); }
};
std::vector<PoolCase> pool_cases();

}  // namespace tessera::ops
