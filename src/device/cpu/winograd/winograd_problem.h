// What the kernels of Winograd's minimal filtering have in common: which convolutions they take, and how
// images are cut into squares.
#pragma once

#include <functional>
#include <memory>

#include "tessera/compile/kernel.h"

#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/winograd/winograd_transforms.h"

namespace tessera::cpu {

// Refuses, saying why, a convolution that is not of 3 x 3, dense, fp32.
void refuse_unless_winograd(const ConvolutionProblem& problem, DataType type);
// The same when squares over `covered` (N, C, height, width) are so few that transforming a filter as large
// as the images costs more than it saves.
void refuse_few_squares(const dnnl::memory::dims& covered, int64_t least);

// Squares over `dims` (N, C, height, width) that begin `before` pixels outside; they cover an image of
// `covered` (N, C, height, width).
WinogradImages winograd_images(const dnnl::memory::dims& dims, const dnnl::memory::dims& before,
                               const dnnl::memory::dims& covered);
int64_t count_squares(const dnnl::memory::dims& covered);

// Rows of 36 matrices one after the other; a little more than dense, lest all begin in the same cache sets.
int64_t matrix_stride(int64_t rows, int64_t row_stride);

// "loops.winograd".
KernelCandidate winograd_candidate(std::function<KernelMaker(const KernelRequest& request)> plan);

}  // namespace tessera::cpu
