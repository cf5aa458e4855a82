#include <cmath>
#include <numbers>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "erf",
    .documentation = "The error function 2/sqrt(pi) * integral from 0 to x of exp(-t^2).",
    .scalar = [](double x) -> double { return std::erf(x); },
    .gradient =
        [](Value* x, Value*, Value* dy) {
          return multiply(multiply(dy, 2 * std::numbers::inv_sqrtpi), exp(negate(square(x))));
        },
})};

}  // namespace
}  // namespace tessera::ops
