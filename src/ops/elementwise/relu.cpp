#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "relu",
    .documentation = "y = max(x, 0). NaN stays NaN; of minus infinity after a product a kernel may make NaN. "
                     "The gradient at 0 is 0.",
    .scalar = [](double x) -> double { return x < 0 ? 0 : x; },
    .gradient = [](Value*, Value* y,
                   Value* dy) { return select_or_zero(greater(y, constant_like(y, 0)), dy); },
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
