#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{binary_primitive({
    .name = "power",
    .documentation = "y = a^b, elementwise with NumPy broadcasting; NaN for a negative a with a fractional "
                     "b. The gradient to b is 0 where a is not positive.",
    .scalar = [](double a, double b) -> double { return std::pow(a, b); },
    .gradient =
        [](Value* a, Value* b, Value* y, Value* dy) {
          // At b = 0 the factor is 0 although a^(b-1) may be infinite.
          Value* derivative = multiply(b, power(a, add(b, -1)));
          Value* da = multiply(dy, zero_or_select(equal(b, constant_like(b, 0)), derivative));
          Value* logarithm = select_or_zero(greater(a, constant_like(a, 0)), log(a));
          return std::pair{da, multiply(dy, multiply(y, logarithm))};
        },
    .low = 0.5,
    .high = 2,
    .types = kFloatingTypes,
})};

}  // namespace
}  // namespace tessera::ops
