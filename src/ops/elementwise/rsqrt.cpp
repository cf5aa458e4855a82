#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "rsqrt",
    .documentation = "y = 1 / sqrt(x).",
    .scalar = [](double x) -> double { return 1 / std::sqrt(x); },
    .gradient = [](Value*, Value* y,
                   Value* dy) { return multiply(multiply(dy, -0.5), multiply(y, square(y))); },
    .low = 0.5,
    .high = 4,
})};

}  // namespace
}  // namespace tessera::ops
