#include "tessera/device/common/rotary_rows.h"

#include <algorithm>

#include "tessera/device/common/strided_move.h"

namespace tessera::backend {

RotaryRows rotary_rows(const Node& node) {
  const Shape x = node.input(0)->type().static_shape();
  const AxisView view = view_along(x, node.attributes().integer("axis"));
  RotaryRows result;
  result.half = x.back() / 2;
  result.rows = element_count(x) / x.back();
  result.tokens = view.extent;
  result.token_rows = view.inner / x.back();
  const bool for_each = node.input(1)->type().rank() == 3;
  result.batch_rows = for_each ? result.rows / std::max<int64_t>(x.front(), 1) : result.rows;
  return result;
}

}  // namespace tessera::backend
