#include "device/cpu/panels/panel_product.h"

#include <algorithm>

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/panels/panel_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/panels/panel_rows-inl.h"
#include "device/cpu/runtime/limits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Tag = hn::ScalableTag<float>;

// Sums stay in registers only if all loops over them are unrolled.
template <int kRows, int kWidth>
HWY_INLINE void end_with(const LoopEpilogue& epilogue, const float* residual, int64_t residual_row,
                         hn::Vec<Tag> (&sums)[kRows][kWidth]) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (epilogue.bias != nullptr) {
#pragma GCC unroll 8
    for (int j = 0; j < kWidth; ++j) {
      const auto bias = hn::LoadU(d, epilogue.bias + j * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) sums[i][j] = hn::Add(sums[i][j], bias);
    }
  }
  if (residual != nullptr) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kWidth; ++j)
        sums[i][j] = hn::Add(sums[i][j], hn::LoadU(d, residual + i * residual_row + j * lanes));
    }
  }
  if (!epilogue.is_limited()) return;
  const auto low = hn::Set(d, epilogue.low);
  const auto high = hn::Set(d, epilogue.high);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kWidth; ++j) sums[i][j] = within_limits(sums[i][j], low, high);
  }
}

// The cache lines of what is multiplied next that some rows fetch: one every few steps, for more at once
// would stand in the way of what these rows read. Without any, the weight that is there already stands for
// them.
class FollowingLines {
 public:
  HWY_INLINE FollowingLines(const PanelProduct& p, int64_t row, int64_t rows) {
    const int64_t first = p.following_elements * row / p.rows;
    const int64_t lines = (p.following_elements * (row + rows) / p.rows - first) / kLine;
    next_ = lines > 0 ? p.following + first : p.b;
    stride_ = lines > 0 ? kLine : 0;
    steps_ = lines > 0 ? (p.depth + lines - 1) / lines : p.depth;
  }
  HWY_INLINE void fetch_one() {
    __builtin_prefetch(next_, /*for writing=*/0, /*locality=*/2);
    next_ += stride_;
  }
  // Between one and the next.
  HWY_INLINE int64_t steps() const { return steps_; }

 private:
  static constexpr int64_t kLine = 16;  // floats
  const float* next_;
  int64_t stride_;
  int64_t steps_;
};

// `row`: the first of the rows.
template <int kRows, int kWidth>
void block(const PanelProduct& p, int64_t row) {
  // Read once: what is stored might be these, for all that a compiler knows.
  const int64_t a_row = p.a_row;
  const int64_t c_row = p.c_row;
  const bool stream = p.stream;
  const float* a = p.a + row * a_row;
  float* c = p.c + row * c_row;
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Tag> sums[kRows][kWidth];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kWidth; ++j) {
      sums[i][j] = p.accumulate ? hn::LoadU(d, c + i * c_row + j * lanes) : hn::Zero(d);
    }
  }
  const float* b = p.b;
  FollowingLines following(p, row, kRows);
  for (int64_t left = p.depth; left > 0;) {
    following.fetch_one();
    const int64_t steps = std::min(left, following.steps());
    left -= steps;
    for (int64_t t = 0; t < steps; ++t) {
      hn::Vec<Tag> columns[kWidth];
#pragma GCC unroll 8
      for (int j = 0; j < kWidth; ++j) columns[j] = hn::LoadU(d, b + j * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const auto element = hn::Set(d, a[i * a_row]);
#pragma GCC unroll 8
        for (int j = 0; j < kWidth; ++j) sums[i][j] = hn::MulAdd(element, columns[j], sums[i][j]);
      }
      a += p.a_depth;
      b += p.b_row;
    }
  }
  if (p.epilogue != nullptr) {
    const float* residual = p.epilogue->residual;
    end_with(*p.epilogue, residual == nullptr ? nullptr : residual + row * c_row, c_row, sums);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kWidth; ++j) {
      float* to = c + i * c_row + j * lanes;
      stream ? hn::Stream(sums[i][j], d, to) : hn::StoreU(sums[i][j], d, to);
    }
  }
}

void multiply(const PanelProduct& p) {
  for_panel(p.rows, p.width / static_cast<int64_t>(hn::Lanes(Tag())),
            [&](auto rows, auto vectors, int64_t row) { block<rows, vectors>(p, row); });
}

int64_t vector() {
  return static_cast<int64_t>(hn::Lanes(Tag()));
}
int64_t panel() {
  return kMostVectors * vector();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(multiply);
HWY_EXPORT(vector);
HWY_EXPORT(panel);

void multiply_panel(const PanelProduct& product) {
  HWY_DYNAMIC_DISPATCH(multiply)(product);
  if (product.epilogue == nullptr) return;
  activate(product.epilogue->activation, product.c, product.c_row, product.rows, product.width);
}
int64_t vector_width() {
  return HWY_DYNAMIC_DISPATCH(vector)();
}
int64_t panel_width() {
  return HWY_DYNAMIC_DISPATCH(panel)();
}

}  // namespace tessera::cpu
#endif
