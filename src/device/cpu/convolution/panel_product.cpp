#include "device/cpu/convolution/panel_product.h"

#include "device/cpu/runtime/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/convolution/panel_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/cpu/convolution/panel_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Tag = hn::ScalableTag<float>;

template <int kRows, int kWidth>
void block(const PanelProduct& p, const float* a, float* c) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Tag> sums[kRows][kWidth];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kWidth; ++j) {
      sums[i][j] = p.accumulate ? hn::LoadU(d, c + i * p.c_row + j * lanes) : hn::Zero(d);
    }
  }
  const float* b = p.b;
  for (int64_t t = 0; t < p.depth; ++t) {
    hn::Vec<Tag> columns[kWidth];
    for (int j = 0; j < kWidth; ++j) columns[j] = hn::LoadU(d, b + j * lanes);
    for (int i = 0; i < kRows; ++i) {
      const auto element = hn::Set(d, a[i * p.a_row]);
      for (int j = 0; j < kWidth; ++j) sums[i][j] = hn::MulAdd(element, columns[j], sums[i][j]);
    }
    a += p.a_depth;
    b += p.b_row;
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kWidth; ++j) {
      float* to = c + i * p.c_row + j * lanes;
      p.stream ? hn::Stream(sums[i][j], d, to) : hn::StoreU(sums[i][j], d, to);
    }
  }
}

void multiply(const PanelProduct& p) {
  for_panel(p.rows, p.width / static_cast<int64_t>(hn::Lanes(Tag())),
            [&](auto rows, auto vectors, int64_t i) {
              block<rows, vectors>(p, p.a + i * p.a_row, p.c + i * p.c_row);
            });
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
}
int64_t vector_width() {
  return HWY_DYNAMIC_DISPATCH(vector)();
}
int64_t panel_width() {
  return HWY_DYNAMIC_DISPATCH(panel)();
}

}  // namespace tessera::cpu
#endif
