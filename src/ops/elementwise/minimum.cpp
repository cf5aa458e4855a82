#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{binary_primitive({
    .name = "minimum",
    .documentation = "The smaller of a and b, elementwise with NumPy broadcasting; NaN when either is NaN. "
                     "The gradient goes to the smaller, half to each where they are equal.",
    .scalar = [](double a, double b) -> double { return std::isnan(a) || a < b ? a : b; },
    .integer = [](int64_t a, int64_t b) -> int64_t { return a < b ? a : b; },
    .gradient =
        [](Value* a, Value* b, Value*, Value* dy) {
          Value* da = select(less(a, b), dy, select_or_zero(equal(a, b), multiply(dy, 0.5)));
          return std::pair{da, subtract(dy, da)};
        },
    .traits = {.low_precision = LowPrecision::follows},
})};

}  // namespace
}  // namespace tessera::ops
