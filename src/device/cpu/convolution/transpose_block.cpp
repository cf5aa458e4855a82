#include "device/cpu/convolution/transpose_block.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/convolution/transpose_block.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The square is transposed in a buffer, 4 by 4, and then written line by line: rows of the target often lie a
// power of two apart and would drive each other out of the cache if they were written a few bytes at a time.
void square(const uint32_t* source, int64_t source_stride, uint32_t* target, int64_t target_stride) {
  HWY_ALIGN uint32_t transposed[kTransposeSquare * kTransposeSquare];
  for (int64_t i = 0; i < kTransposeSquare; i += 4) {
    const uint32_t* row = source + i * source_stride;
    for (int64_t j = 0; j < kTransposeSquare; j += 4) {
      uint32_t* out = transposed + j * kTransposeSquare + i;
#if HWY_TARGET == HWY_SCALAR
      for (int64_t r = 0; r < 4; ++r) {
        for (int64_t c = 0; c < 4; ++c) out[c * kTransposeSquare + r] = row[r * source_stride + j + c];
      }
#else
      const hn::FixedTag<uint32_t, 4> d;
      const auto a = hn::LoadU(d, row + j);
      const auto b = hn::LoadU(d, row + source_stride + j);
      const auto c = hn::LoadU(d, row + 2 * source_stride + j);
      const auto e = hn::LoadU(d, row + 3 * source_stride + j);
      const auto ac_low = hn::InterleaveLower(d, a, c);
      const auto be_low = hn::InterleaveLower(d, b, e);
      const auto ac_high = hn::InterleaveUpper(d, a, c);
      const auto be_high = hn::InterleaveUpper(d, b, e);
      hn::Store(hn::InterleaveLower(d, ac_low, be_low), d, out);
      hn::Store(hn::InterleaveUpper(d, ac_low, be_low), d, out + kTransposeSquare);
      hn::Store(hn::InterleaveLower(d, ac_high, be_high), d, out + 2 * kTransposeSquare);
      hn::Store(hn::InterleaveUpper(d, ac_high, be_high), d, out + 3 * kTransposeSquare);
#endif
    }
  }
  for (int64_t j = 0; j < kTransposeSquare; ++j) {
    std::copy_n(transposed + j * kTransposeSquare, kTransposeSquare, target + j * target_stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::cpu {

HWY_EXPORT(square);

void transpose_square(const uint32_t* source, int64_t source_stride, uint32_t* target,
                      int64_t target_stride) {
  HWY_DYNAMIC_DISPATCH(square)(source, source_stride, target, target_stride);
}

}  // namespace tessera::cpu
#endif
