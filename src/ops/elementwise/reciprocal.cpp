#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "reciprocal",
    .documentation = "y = 1 / x.",
    .scalar = [](double x) -> double { return 1 / x; },
    .gradient = [](Value*, Value* y, Value* dy) { return negate(multiply(dy, square(y))); },
    .low = 0.5,
    .high = 4,
})};

}  // namespace
}  // namespace tessera::ops
