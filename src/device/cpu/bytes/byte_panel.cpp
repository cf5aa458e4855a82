#include "device/cpu/bytes/byte_panel.h"

#include <cstring>

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/bytes/byte_panel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/panels/panel_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

#if HWY_TARGET == HWY_SCALAR
// There are no pairs.
void multiply(const BytePanel& p) {
  for (int64_t i = 0; i < p.rows; ++i) {
    for (int64_t column = 0; column < p.panel; ++column) {
      int64_t sum = 0;
      for (int64_t t = 0; t < p.row; ++t)
        sum += p.left[i * p.row + t] * p.packed[(t / 2 * p.panel + column) * 2 + t % 2];
      p.sums[i * p.panel + column] = static_cast<int32_t>(sum);
    }
  }
}
#else

using Sums = hn::ScalableTag<int32_t>;
using Factors = hn::Repartition<int16_t, Sums>;

// Sums stay in registers only if all loops over them are unrolled.
template <int kRows, int kWidth>
void multiply_block(const BytePanel& p, const int16_t* left, int32_t* to) {
  const Sums d;
  const Factors pairs;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Read once: what is stored might be these, for all that a compiler knows.
  const int64_t row = p.row;
  const int64_t panel = p.panel;
  hn::Vec<Sums> sums[kRows][kWidth];
  hn::Vec<Sums> more[kRows][kWidth];  // of the odd places, where the instruction keeps them apart
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kWidth; ++j) sums[i][j] = more[i][j] = hn::Zero(d);
  }
  const int16_t* right = p.packed;
  for (int64_t t = 0; t < row; t += 2, right += 2 * panel) {
    hn::Vec<Factors> columns[kWidth];
#pragma GCC unroll 8
    for (int j = 0; j < kWidth; ++j) columns[j] = hn::LoadU(pairs, right + 2 * j * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      int32_t both = 0;
      std::memcpy(&both, left + i * row + t, sizeof(both));
      const auto factors = hn::BitCast(pairs, hn::Set(d, both));
#pragma GCC unroll 8
      for (int j = 0; j < kWidth; ++j)
        sums[i][j] = hn::ReorderWidenMulAccumulate(d, factors, columns[j], sums[i][j], more[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kWidth; ++j)
      hn::StoreU(hn::RearrangeToOddPlusEven(sums[i][j], more[i][j]), d, to + i * panel + j * lanes);
  }
}

void multiply(const BytePanel& p) {
  for_panel(p.rows, p.panel / static_cast<int64_t>(hn::Lanes(Sums())),
            [&](auto rows, auto vectors, int64_t i) {
              multiply_block<rows, vectors>(p, p.left + i * p.row, p.sums + i * p.panel);
            });
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(multiply);

void multiply_panel(const BytePanel& panel) {
  HWY_DYNAMIC_DISPATCH(multiply)(panel);
}

}  // namespace tessera::cpu
#endif
