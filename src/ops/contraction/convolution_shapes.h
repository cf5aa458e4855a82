// What convolution and its two gradients share: one product x * weight summed into y, looked at from three
// sides.
#pragma once

#include <vector>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "ops/contraction/windows.h"

namespace tessera::ops {

// strides, padding_low, padding_high, dilations, groups.
std::vector<AttributeSpecification> convolution_attribute_list();
ConvolutionOptions convolution_options(const Attributes& attributes);
WindowOptions convolution_windows(const SymbolicShape& weight, const Attributes& attributes);

// [N, spatial..., K] of x: [N, spatial..., C] and weight: [K, spatial..., C/groups]. Throws
// Error(invalid_graph).
SymbolicShape convolution_result(const SymbolicShape& x, const SymbolicShape& weight,
                                 const Attributes& attributes);

double convolution_flops(const Shape& weight, const Shape& y);

// visit(x, weight, y), row-major indices, for every product of the convolution.
template <typename Visit>
void walk_convolution(const Shape& x, const Shape& weight, const Shape& y, const Attributes& attributes,
                      Visit&& visit) {
  const WindowGeometry geometry(x, y, convolution_windows(to_symbolic(weight), attributes));
  const int64_t in = x.back();
  const int64_t out = y.back();
  const int64_t in_of_group = weight.back();
  const int64_t out_of_group = out / attributes.integer("groups");
  for (int64_t n = 0; n < x[0]; ++n) {
    walk_windows(geometry, [&](int64_t result, int64_t tap, int64_t pixel) {
      for (int64_t k = 0; k < out; ++k) {
        const int64_t y_index = (n * geometry.results() + result) * out + k;
        const int64_t x_start = (n * geometry.pixels() + pixel) * in + k / out_of_group * in_of_group;
        const int64_t w_start = (k * geometry.taps() + tap) * in_of_group;
        for (int64_t c = 0; c < in_of_group; ++c) {
          visit(static_cast<size_t>(x_start + c), static_cast<size_t>(w_start + c),
                static_cast<size_t>(y_index));
        }
      }
    });
  }
}

// The cases that all three operators are tried on.
struct ConvolutionCase {
  Shape x;
  Shape weight;
  Attributes attributes;
  Shape result() const {
    return to_static(convolution_result(to_symbolic(x), to_symbolic(weight), attributes));
  }
};
std::vector<ConvolutionCase> convolution_cases();

}  // namespace tessera::ops
