// A convolution in oneDNN's terms: logical axes N, C, spatial... over channels-last memory.
#pragma once

#include "device/cpu/onednn/onednn.h"

namespace tessera::cpu {

struct ConvolutionProblem {
  dnnl::memory::dims source;       // [N, C, spatial...]
  dnnl::memory::dims weight;       // [K, C, spatial...], or [G, K/G, C/G, spatial...] with groups
  dnnl::memory::dims destination;  // [N, K, spatial...]
  dnnl::memory::dims strides, dilations, padding_low, padding_high;  // per spatial axis; dilation 0 is dense
  int64_t groups = 1;

  int64_t input_channels() const { return source[1]; }
  int64_t output_channels() const { return destination[1]; }
  bool has_window() const;  // of more than one element
  // A window of one element, no stride, padding or groups: a matrix product over pixels.
  bool is_pointwise() const;
  bool is_depthwise() const;  // each channel of the result is made of the one of its place
  // Along some axis no element of the window is ever on the image: the result is nothing but a bias.
  bool misses_image() const;
  int64_t pixels() const;  // N times the spatial extents of the destination

  // As the graph stores them: [N, spatial..., C], [K, spatial..., C/groups], [N, spatial..., K].
  dnnl::memory::desc source_stored(dnnl::memory::data_type type) const;
  dnnl::memory::desc weight_stored(dnnl::memory::data_type type) const;
  dnnl::memory::desc destination_stored(dnnl::memory::data_type type) const;
};

// Shapes of the three tensors as the graph has them, and a node with the attributes of a convolution; axes
// may be in another order, in which the same memory is read. Throws Error(unsupported) for what oneDNN cannot
// describe.
ConvolutionProblem make_convolution_problem(const Shape& source, const Shape& weight,
                                            const Shape& destination, const Attributes& attributes);
// The same of a convolution's own operands and result.
ConvolutionProblem problem_of(const Node& convolution);

// Of a convolution or its data gradient by oneDNN, which ends the program: refuses windows in bf16 that miss
// the image. tests/device_cpu/onednn_amx_faults_test.cpp tells when the installed version does so no more.
void refuse_beside_image(const ConvolutionProblem& problem, dnnl::memory::data_type type);

// oneDNN's axis order N, C, spatial... for a channels-last tensor of `dims` (already in that order).
dnnl::memory::desc channels_last(const dnnl::memory::dims& dims, dnnl::memory::data_type type);

}  // namespace tessera::cpu
