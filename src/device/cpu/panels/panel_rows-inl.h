// How the rows and columns of a panel are cut into what registers hold. Included once per instruction set.
#if defined(TESSERA_PANEL_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_PANEL_ROWS_INL_H
#undef TESSERA_PANEL_ROWS_INL_H
#else
#define TESSERA_PANEL_ROWS_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "device/cpu/panels/panel_product.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::cpu {
namespace HWY_NAMESPACE {

// 6 rows of 4 vectors fill 24 of 32 registers with sums; where there are 16 registers, 2 vectors fill 12.
constexpr int kMostVectors = HWY_MAX_BYTES >= 64 ? 4 : 2;

// Calls block(rows, vectors, first row), of constants, until all rows are done.
template <int kVectors, typename Block>
HWY_INLINE void for_rows(int64_t rows, const Block& block) {
  int64_t i = 0;
  const auto step = [&](auto count) {
    for (; i + count <= rows; i += count) block(count, std::integral_constant<int, kVectors>(), i);
  };
  step(std::integral_constant<int, kPanelRows>());
  step(std::integral_constant<int, 4>());
  step(std::integral_constant<int, 2>());
  step(std::integral_constant<int, 1>());
}

// The same of a panel so many vectors wide.
template <typename Block>
HWY_INLINE void for_panel(int64_t rows, int64_t vectors, const Block& block) {
  switch (vectors) {
    case 1:
      return for_rows<1>(rows, block);
    case 2:
      return for_rows<2>(rows, block);
    case 3:
      return for_rows < kMostVectors < 3 ? 1 : 3 > (rows, block);
    default:
      return for_rows<kMostVectors>(rows, block);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::cpu
HWY_AFTER_NAMESPACE();

#endif
