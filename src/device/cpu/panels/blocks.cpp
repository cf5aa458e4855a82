#include "device/cpu/panels/blocks.h"

#include <omp.h>

#include "device/cpu/panels/panel_product.h"

namespace tessera::cpu {
namespace {

// Blocks that grow by more than this part of themselves would leave one thread waiting for the other for
// longer than a few rows that are multiplied by themselves cost.
constexpr int64_t kWorthEvenness = 8;

}  // namespace

Blocks cut_into_blocks(int64_t total, int64_t largest) {
  const int64_t parts = std::min<int64_t>(omp_get_max_threads(), quotient_rounded_up(total, kPanelRows));
  const int64_t rounds = quotient_rounded_up(total, parts * largest);
  const int64_t even = quotient_rounded_up(total, parts * rounds);
  const int64_t rounded = round_up(even, kPanelRows);
  return cut_into_panels(total, rounded - even > even / kWorthEvenness ? even : rounded);
}

Blocks cut_evenly(int64_t total, int64_t largest, int64_t multiple) {
  const int64_t rounds = quotient_rounded_up(total, largest);
  return cut_into_panels(total, round_up(quotient_rounded_up(total, rounds), multiple));
}

Blocks cut_into_panels(int64_t total, int64_t size) {
  Blocks blocks{total, size};
  blocks.parts = std::min<int64_t>(omp_get_max_threads(), blocks.count());
  return blocks;
}

}  // namespace tessera::cpu
