// Resizing three channels by products of 16 bits, whose pairs one instruction adds.
#include <algorithm>
#include <cmath>

#include "data/image/resize.h"

// SSE4 and AVX2 beside what every machine has: wider vectors gain nothing on rows of a few hundred values.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | (HWY_AVX2 - 1))
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/image/resize_narrow.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tessera::data::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Rows: sums of weight * byte, weights in kWeightBits, results in kPointBits.
constexpr int kWeightBits = 14;
constexpr int kPointBits = 6;

// The sum over taps of weights[tap] * lines[tap * stride + i].
int16_t add_rows_at(const uint8_t* lines, int64_t stride, const int16_t* weights, int64_t taps, int64_t i) {
  int32_t sum = 1 << (kWeightBits - kPointBits - 1);
  for (int64_t tap = 0; tap < taps; ++tap) sum += weights[tap] * lines[tap * stride + i];
  return static_cast<int16_t>(sum >> (kWeightBits - kPointBits));
}

#if HWY_TARGET == HWY_SCALAR

void add_rows(const uint8_t* lines, int64_t stride, const int16_t* weights, int64_t taps, int64_t count,
              int16_t* row) {
  for (int64_t i = 0; i < count; ++i) row[i] = add_rows_at(lines, stride, weights, taps, i);
}

void add_columns(const int16_t* row, const int64_t* first, const int16_t* weights, int64_t stride,
                 int64_t count, uint8_t* target) {
  constexpr int kShift = kWeightBits + kPointBits;
  for (int64_t i = 0; i < 3 * count; ++i) {
    const int16_t* const values = row + 3 * first[i / 3] + i % 3;
    int32_t sum = 1 << (kShift - 1);
    for (int64_t tap = 0; tap < stride; ++tap) sum += weights[i / 3 * stride + tap] * values[3 * tap];
    target[i] = static_cast<uint8_t>(std::clamp(sum >> kShift, 0, 255));
  }
}

#else

// Two weights as the instructions take them, side by side.
int32_t pair_of(int16_t first, int16_t second) {
  return static_cast<int32_t>(static_cast<uint16_t>(first) |
                              static_cast<uint32_t>(static_cast<uint16_t>(second)) << 16);
}

// The products of neighbors, added up.
template <class D32, class V16>
hn::Vec<D32> add_products(D32 d32, V16 a, V16 b) {
#if HWY_ARCH_X86
  auto none = hn::Zero(d32);
  return hn::ReorderWidenMulAccumulate(d32, a, b, hn::Zero(d32), none);
#else
  const auto even = [&](auto v) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(d32, v))); };
  const auto odd = [&](auto v) { return hn::ShiftRight<16>(hn::BitCast(d32, v)); };
  return hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b)));
#endif
}

// row[i] = the sum over taps of weights[tap] * lines[tap * stride + i].
void add_rows(const uint8_t* HWY_RESTRICT lines, int64_t stride, const int16_t* HWY_RESTRICT weights,
              int64_t taps, int64_t count, int16_t* HWY_RESTRICT row) {
  const hn::ScalableTag<int16_t> d16;
  const hn::Repartition<int32_t, decltype(d16)> d32;
  const hn::Rebind<uint8_t, decltype(d16)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d16));
  const auto half = hn::Set(d32, 1 << (kWeightBits - kPointBits - 1));
  const auto vector_at = [&](int64_t i) {
    auto low = half;
    auto high = half;
    for (int64_t tap = 0; tap < taps; tap += 2) {
      const bool both = tap + 1 < taps;
      const uint8_t* const line = lines + tap * stride + i;
      const auto pair = hn::BitCast(d16, hn::Set(d32, pair_of(weights[tap], both ? weights[tap + 1] : 0)));
      const auto first = hn::PromoteTo(d16, hn::LoadU(d8, line));
      const auto second = hn::PromoteTo(d16, hn::LoadU(d8, both ? line + stride : line));
      // Within each 128-bit block, as ReorderDemote2To puts them together again.
      low = hn::Add(low, add_products(d32, hn::InterleaveLower(d16, first, second), pair));
      high = hn::Add(high, add_products(d32, hn::InterleaveUpper(d16, first, second), pair));
    }
    constexpr int kShift = kWeightBits - kPointBits;
    hn::StoreU(hn::ReorderDemote2To(d16, hn::ShiftRight<kShift>(low), hn::ShiftRight<kShift>(high)), d16,
               row + i);
  };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) vector_at(i);
  if (i < count && count >= lanes) {
    vector_at(count - lanes);
  } else {
    for (; i < count; ++i) row[i] = add_rows_at(lines, stride, weights, taps, i);
  }
}

// Pixels of three bytes, each a sum of pixels of three 16-bit values. `stride` is even, the weight of a tap
// that is too many 0. Reads eight values from each second pixel on, and writes one byte after the last.
void add_columns(const int16_t* HWY_RESTRICT row, const int64_t* HWY_RESTRICT first,
                 const int16_t* HWY_RESTRICT weights, int64_t stride, int64_t count,
                 uint8_t* HWY_RESTRICT target) {
  const hn::Full128<int16_t> d16;
  const hn::Full128<int32_t> d32;
  const hn::Full128<uint8_t> d8;
  const hn::Rebind<uint8_t, decltype(d32)> four_bytes;
  // Of r0 g0 b0 r1 g1 b1 . .: the pairs of each channel.
  alignas(16) static constexpr uint8_t kPairs[16] = {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, 4, 5, 10, 11};
  const auto pairs = hn::BitCast(d16, hn::Load(d8, kPairs));
  constexpr int kShift = kWeightBits + kPointBits;
  const auto half = hn::Set(d32, 1 << (kShift - 1));
  for (int64_t x = 0; x < count; ++x) {
    auto sum = half;
    const int16_t* const pixels = row + 3 * first[x];
    const int16_t* const own = weights + x * stride;
    for (int64_t tap = 0; tap < stride; tap += 2) {
      const auto values = hn::TableLookupBytes(hn::LoadU(d16, pixels + 3 * tap), pairs);
      int32_t both = 0;
      hwy::CopyBytes<4>(own + tap, &both);
      const auto pair = hn::BitCast(d16, hn::Set(d32, both));
      sum = hn::Add(sum, add_products(d32, values, pair));
    }
    hn::StoreU(hn::DemoteTo(four_bytes, hn::ShiftRight<kShift>(sum)), four_bytes, target + 3 * x);
  }
}

#endif

}  // namespace
}  // namespace tessera::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::data {
namespace {

HWY_EXPORT(add_rows);
HWY_EXPORT(add_columns);

constexpr int kWeightBits = 14;
constexpr int64_t kMostTaps = 32;  // so that what rounding the weights adds up to stays below a quarter

// The taps of each pixel, an even number, whose weights add up to exactly one.
std::vector<int16_t> narrow_weights(const AxisWeights& axis, int64_t taps) {
  std::vector<int16_t> narrow(static_cast<size_t>(axis.count * taps), 0);
  for (int64_t i = 0; i < axis.count; ++i) {
    const double* const exact = axis.weights.data() + i * axis.stride;
    int16_t* const own = narrow.data() + i * taps;
    int32_t left = 1 << kWeightBits;
    const int64_t used = axis.taps[static_cast<size_t>(i)];
    for (int64_t tap = 0; tap < used; ++tap) {
      own[tap] = static_cast<int16_t>(std::lround(exact[tap] * (1 << kWeightBits)));
      left -= own[tap];
    }
    *std::max_element(own, own + used) += static_cast<int16_t>(left);
  }
  return narrow;
}

int64_t even_taps(const AxisWeights& axis) {
  return (*std::ranges::max_element(axis.taps) + 1) / 2 * 2;
}

}  // namespace

bool can_resize_narrow(const PixelView& source, ResizeFilter filter, const AxisWeights& rows,
                       const AxisWeights& columns) {
  return source.channels == 3 && (filter == ResizeFilter::area || filter == ResizeFilter::bilinear) &&
         std::max(rows.stride, columns.stride) <= kMostTaps;
}

void resize_narrow(const PixelView& source, const AxisWeights& rows, const AxisWeights& columns,
                   std::span<uint8_t> target, ResizeScratch& scratch) {
  const int64_t row_taps = even_taps(rows);
  const int64_t column_taps = even_taps(columns);
  const std::vector<int16_t> row_weights = narrow_weights(rows, row_taps);
  const std::vector<int16_t> column_weights = narrow_weights(columns, column_taps);
  // Only the columns that are looked at.
  const auto [left, right] = std::ranges::minmax(columns.first);
  const int64_t used = std::min(right + columns.stride, source.width) - left;
  std::vector<int64_t> first = columns.first;
  for (int64_t& place : first) place -= left;
  // Taps of weight 0 beyond the last column find zeros there.
  scratch.row.assign(static_cast<size_t>((used + column_taps + 2) * 3), 0);
  scratch.bytes.resize(static_cast<size_t>(columns.count * 3 + 1));
  for (int64_t y = 0; y < rows.count; ++y) {
    const auto place = static_cast<size_t>(y);
    const uint8_t* const lines = source.data + rows.first[place] * source.stride + left * 3;
    HWY_DYNAMIC_DISPATCH(add_rows)
    (lines, source.stride, row_weights.data() + y * row_taps, rows.taps[place], used * 3, scratch.row.data());
    uint8_t* const line = target.data() + y * columns.count * 3;
    // One byte too many would be another's after the last row.
    const bool last = y + 1 == rows.count;
    uint8_t* const out = last ? scratch.bytes.data() : line;
    HWY_DYNAMIC_DISPATCH(add_columns)
    (scratch.row.data(), first.data(), column_weights.data(), column_taps, columns.count, out);
    if (last) std::copy_n(out, columns.count * 3, line);
  }
}

}  // namespace tessera::data
#endif
