#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "sqrt",
    .documentation = "The square root; NaN for negative x.",
    .scalar = [](double x) -> double { return std::sqrt(x); },
    .gradient = [](Value*, Value* y, Value* dy) { return divide(multiply(dy, 0.5), y); },
    .low = 0.5,
    .high = 4,
})};

}  // namespace
}  // namespace tessera::ops
