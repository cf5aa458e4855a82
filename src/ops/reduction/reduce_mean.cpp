#include "ops/reduction/reduction.h"

namespace tessera::ops {
namespace {

// dy / count; in 16-bit types by way of fp32, because the count may be beyond 65504, fp16's largest number.
Value* gradient_reduce_mean(Value* x, Value*, Value* dy, const std::vector<int64_t>& axes) {
  const DataType type = x->data_type();
  const DataType wide = is_half(type) ? DataType::fp32 : type;
  Value* share = divide(cast(dy, wide), axes_element_count(x, axes, wide));
  return broadcast_to(cast(share, type), x->shape());
}

const OperatorRegistration kRegistration(reduction({
    .name = "reduce_mean",
    .kind = ReductionKind::mean,
    .documentation =
        "Mean over `axes`; of no elements it is NaN. 16-bit types are summed and divided in at least fp32.",
    .types = kFloatingTypes,
    .start = 0,
    .combine = [](double sum, double element) { return sum + element; },
    .finish = [](double sum, int64_t count) { return sum / static_cast<double>(count); },
    .gradient = gradient_reduce_mean,
}));

}  // namespace
}  // namespace tessera::ops
