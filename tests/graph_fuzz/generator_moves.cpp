// What moves elements, and what looks them up.
#include "graph_fuzz/generator.h"

namespace tessera::testing {

Value* Generator::movement() {
  Value* x = any();
  const int64_t rank = x->type().rank();
  if (rank == 0) return nullptr;
  const auto count = static_cast<size_t>(rank);
  const auto axis = static_cast<size_t>(below(rank));
  const int64_t extent = shape_of(x)[axis];
  std::vector<int64_t> low(count, 0);
  std::vector<int64_t> high(count, 0);
  switch (below(7)) {
    case 0:
      return ops::reshape(x, {x->type().element_count()});
    case 1: {
      std::vector<int64_t> permutation;
      for (int64_t i = 0; i < rank; ++i)
        permutation.insert(permutation.begin() + below(static_cast<int64_t>(permutation.size()) + 1), i);
      return ops::transpose(x, permutation);
    }
    case 2:
      low[axis] = extent == 0 ? 0 : below(extent);
      high.assign(count, ops::kWholeAxis);
      return ops::slice(x, low, high);
    case 3:
      low[axis] = below(3);
      high[axis] = below(3);
      return ops::pad(x, low, high, 0.5);
    case 4:
      // Not x and its negative: sums over both would be 0 but for roundings, which no bound of theirs
      // foresees.
      return ops::concat({x, chance(50) ? x : ops::multiply(x, -0.5)}, static_cast<int64_t>(axis));
    case 5: {
      if (extent < 2) return nullptr;
      const int64_t cut = 1 + below(extent - 1);
      const std::vector<Value*> parts = ops::split(x, {cut, extent - cut}, static_cast<int64_t>(axis));
      extra_.push_back(parts[0]);
      return parts[1];
    }
    default: {
      SymbolicShape wide = x->shape();
      wide.insert(wide.begin(), 2);
      return rank < 4 ? ops::broadcast_to(x, wide) : nullptr;
    }
  }
}

Value* Generator::indexing() {
  Value* x = any();
  if (x->type().rank() < 1 || shape_of(x)[0] == 0) return nullptr;
  const int64_t extent = shape_of(x)[0];
  const auto indices = [&](int64_t count, int64_t bound) {
    return add_input(InputRole::input, {count}, 0, static_cast<double>(bound), DataType::int32);
  };
  switch (below(7)) {
    case 0:
      return ops::gather(x, indices(1 + below(6), extent));
    case 1:
      return ops::one_hot(indices(1 + below(6), extent), extent);
    case 2: {
      const int64_t bound = 1 + below(6);
      return ops::scatter_add(indices(extent, bound), x, bound);
    }
    case 3: {  // computed ones
      Value* own = ops::reshape(integers(), {-1});
      own = ops::minimum(ops::maximum(own, ops::constant_like(own, 0)),
                         ops::constant_like(own, static_cast<double>(extent - 1)));
      return ops::gather(x, own);
    }
    case 4:
      return ops::combine_rows(indices(extent, extent), x).sums;
    case 5: {  // rows of it, one of which may be left out
      const ops::CombinedRows rows = ops::combine_rows(indices(extent, 1 + extent), x);
      Value* last = ops::constant_like(rows.first, static_cast<double>(extent - 1));
      return ops::set_rows(x, ops::minimum(rows.first, last), rows.sums);
    }
    default:
      return channels(x) == 0 ? nullptr : ops::top_k(x, 1 + below(channels(x))).values;
  }
}

}  // namespace tessera::testing
