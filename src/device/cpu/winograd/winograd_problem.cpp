#include "device/cpu/winograd/winograd_problem.h"

#include <algorithm>

#include "tessera/base/rounding.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/panels/panel_product.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kCacheLine = 16;  // floats

// Of the direct way's rounding errors, on average in fp32: sums of pixels are multiplied with sums of taps,
// and differences taken of the products (Barabasz et al. 2020, ACM Trans. Math. Softw. 46(4), table 2).
constexpr double kRoundingAmplification = 10;

int64_t squares_along(int64_t pixels) {
  return quotient_rounded_up(pixels, kWinogradSquare);
}

}  // namespace

void refuse_unless_winograd(const ConvolutionProblem& problem, DataType type) {
  const auto all = [](const dnnl::memory::dims& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
  };
  refuse_unless(type == DataType::fp32, "only fp32, not {}", to_string(type));
  refuse_unless(problem.groups == 1, "{} groups", problem.groups);
  refuse_unless(problem.weight.size() == 4 && problem.weight[2] == 3 && problem.weight[3] == 3,
                "the window is not 3 x 3");
  refuse_unless(all(problem.strides, 1) && all(problem.dilations, 0), "strides or dilations");
  const int64_t least = vector_width();
  refuse_unless(problem.input_channels() >= least && problem.output_channels() >= least,
                "fewer than {} channels", least);
}

WinogradImages winograd_images(const dnnl::memory::dims& dims, const dnnl::memory::dims& before,
                               const dnnl::memory::dims& covered) {
  return {dims[2],
          dims[3],
          dims[1],
          {before[0], before[1]},
          squares_along(covered[2]),
          squares_along(covered[3])};
}

int64_t count_squares(const dnnl::memory::dims& covered) {
  return covered[0] * squares_along(covered[2]) * squares_along(covered[3]);
}

void refuse_few_squares(const dnnl::memory::dims& covered, int64_t least) {
  const int64_t squares = count_squares(covered);
  refuse_unless(squares >= least, "{} squares do not pay for the transformed filter", squares);
}

int64_t matrix_stride(int64_t rows, int64_t row_stride) {
  return round_up(rows * row_stride, kCacheLine) + kCacheLine;
}

KernelCandidate winograd_candidate(std::function<KernelMaker(const KernelRequest& request)> plan) {
  KernelCandidate candidate = checked_candidate("loops.winograd", std::move(plan));
  candidate.rounding_amplification = kRoundingAmplification;
  return candidate;
}

}  // namespace tessera::cpu
