// What the kernels of Winograd's minimal filtering have in common: which convolutions they take, and how
// images are cut into squares and the squares into blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>

#include "tessera/base/rounding.h"
#include "tessera/compile/kernel.h"
#include "tessera/device/common/workspace_layout.h"

#include "device/cpu/convolution_problem.h"
#include "device/cpu/winograd_transforms.h"

namespace tessera::cpu {

// Throws Error(unsupported), saying why, for a convolution that is not of 3 x 3, dense, fp32.
void refuse_unless_winograd(const ConvolutionProblem& problem, DataType type);
// The same when squares over `covered` (N, C, height, width) are so few that transforming a filter as large
// as the images costs more than it saves.
void refuse_few_squares(const dnnl::memory::dims& covered, int64_t least);

// Squares over `dims` (N, C, height, width) that begin `before` pixels outside; they cover an image of
// `covered` (N, C, height, width).
WinogradImages winograd_images(const dnnl::memory::dims& dims, const dnnl::memory::dims& before,
                               const dnnl::memory::dims& covered);
int64_t count_squares(const dnnl::memory::dims& covered);

// Consecutive squares, or channels, that a thread works on at a time. A block of many reads the other operand
// rarely, one of few stays in the second-level cache.
struct WinogradBlocks {
  int64_t total = 0;
  int64_t size = 0;   // of a block; the last may be smaller
  int64_t parts = 1;  // threads; each has something to do
  int64_t count() const { return quotient_rounded_up(total, size); }
  Range block(int64_t index) const { return {index * size, std::min((index + 1) * size, total)}; }
};
// Evenly among the threads, multiples of kPanelRows.
WinogradBlocks cut_into_blocks(int64_t total, int64_t largest);
// Of exactly this size.
WinogradBlocks cut_into_panels(int64_t total, int64_t size);

// Scratch memory of which all threads share one piece, and each has another for itself.
struct WinogradWorkspace {
  backend::WorkspaceLayout shared;
  backend::WorkspaceLayout own;

  int64_t bytes(int64_t threads) const { return shared.bytes() + threads * own.bytes(); }
  void* own_of(void* workspace, int64_t thread) const {
    return static_cast<std::byte*>(workspace) + bytes(thread);
  }
};

// Rows of 36 matrices one behind the other; a little more than dense, lest all begin in the same cache sets.
int64_t matrix_stride(int64_t rows, int64_t row_stride);

// "loops.winograd".
KernelCandidate winograd_candidate(
    std::function<void(const KernelRequest& request)> check,
    std::function<std::unique_ptr<Kernel>(const KernelRequest& request)> create);

}  // namespace tessera::cpu
