#include "ops/reduction/reduction.h"

namespace tessera::ops {
namespace {

// dy times the product of the other elements. That is y / x only where x is not 0: the product is taken over
// the elements that are not zero, and the zeros are counted, so that one zero gets the product of all others.
Value* gradient_reduce_product(Value* x, Value*, Value* dy, const std::vector<int64_t>& axes) {
  const ReduceOptions options{.axes = axes, .keep_dimensions = true};
  const DataType type = x->data_type();
  const DataType wide = is_half(type) ? DataType::fp32 : type;
  Value* zero = constant_like(x, 0);
  Value* is_zero = equal(x, zero);
  Value* product = reduce_product(select(is_zero, constant_like(x, 1), x), options);
  Value* zeros = reduce_sum(cast(is_zero, wide), options);
  Value* without_zeros = select(equal(zeros, constant_like(zeros, 0)), divide(product, x), zero);
  Value* the_only_zero = select(equal(zeros, constant_like(zeros, 1)), product, zero);
  return multiply(dy, select(is_zero, the_only_zero, without_zeros));
}

const OperatorRegistration kRegistration(reduction({
    .name = "reduce_product",
    .kind = ReductionKind::product,
    .documentation = "Product over `axes`. The gradient is right for elements that are zero too; a gradient "
                     "of that gradient is not.",
    .start = 1,
    .combine = [](double product, double element) { return product * element; },
    .gradient = gradient_reduce_product,
}));

}  // namespace
}  // namespace tessera::ops
