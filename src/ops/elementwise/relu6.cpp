#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "relu6",
    .documentation = "y = min(max(x, 0), 6). The gradient at 0 and 6 is 0.",
    .formula = [](Value* x, const Attributes&) -> Value* { return minimum(relu(x), constant_like(x, 6)); },
    .gradient = [](Value*, Value* y, Value* dy, const Attributes&) -> Value* {
      Value* inside = logical_and(greater(y, constant_like(y, 0)), less(y, constant_like(y, 6)));
      return select_or_zero(inside, dy);
    },
    .low = -4,
    .high = 10,
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
