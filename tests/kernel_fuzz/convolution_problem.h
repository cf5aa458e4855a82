// A convolution's shapes and options at random: for the operator, its gradients, and networks around them.
#pragma once

#include "tessera/ops/functions.h"

#include "kernel_fuzz/draw.h"

namespace tessera::testing {

struct RandomConvolution {
  Shape x, weight, y;
  ops::ConvolutionOptions options;      // all lists filled
  std::vector<int64_t> output_padding;  // of the transposed convolution from y to x
};

// Of one to three spatial axes, or of so many; about at most so many multiplications.
RandomConvolution random_convolution(Draw& draw, int64_t spatial_axes = 0, int64_t most_products = 1500000);

}  // namespace tessera::testing
