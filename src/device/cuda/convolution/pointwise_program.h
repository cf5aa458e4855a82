// What the kernels for pointwise convolutions with their neighbors share: blocks that stay on the
// multiprocessors and go over the pixels item by item.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device/common/refusal.h"
#include "tessera/graph/graph.h"

#include "device/cuda/codegen/partial_sums.h"

namespace tessera::cuda {

// A pointwise convolution of `pixels` from `inputs` to `outputs` channels.
struct PointwiseProblem {
  static constexpr int64_t kItem = 32;  // pixels of 16 bits
  static constexpr int64_t kLeastStages = 3;

  DataType type = DataType::fp16;
  int64_t pixels = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t item = kItem;
  int64_t stages = 0;  // items in shared memory

  // `node`: a convolution or a data gradient; x and y: the convolution's. Throws Error(unsupported) for
  // windows of more than one element, for types that are not of 16 bits, but for fp32 where it may be in
  // TF32, and for empty or huge tensors.
  PointwiseProblem(const Node& node, const Value& x, const Value& y, bool tf32);

  int64_t element_bytes() const { return static_cast<int64_t>(size_of(type)); }
  int64_t bytes_of(int64_t elements) const { return elements * element_bytes(); }
  int64_t elements_of_floats(int64_t count) const {
    return count * static_cast<int64_t>(sizeof(float) / size_of(type));
  }
  int64_t items() const;
  // How many of so many elements each a multiprocessor holds beside `others` elements.
  int64_t stages_in(int64_t elements, int64_t others, const GpuTraits& gpu) const;
  // As many, or `most`. Throws Error(unsupported) when they are too few.
  void set_stages(int64_t elements, int64_t others, const GpuTraits& gpu, int64_t most = 4);
  // The structure P of a header of kernels/, with these constants beside.
  std::string print(std::string_view header, const std::string& constants) const;
};

// Smaller tensors stay in the cache, where the passes over them that a kernel saves cost little.
constexpr int64_t kLeastUncachedBytes = int64_t{32} << 20;

// The problem, if it is one of the kernel's and its widest tensor does not fit the cache.
template <typename Problem, typename... Arguments>
std::optional<Problem> worthwhile(int64_t PointwiseProblem::*widest, const Arguments&... arguments) {
  auto problem = backend::unless_refused([&] { return Problem(arguments...); });
  if (problem.has_value() && problem->bytes_of(problem->pixels * (*problem).*widest) < kLeastUncachedBytes)
    problem.reset();
  return problem;
}

}  // namespace tessera::cuda
