#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "log",
    .documentation = "The natural logarithm; NaN for negative x.",
    .scalar = [](double x) -> double { return std::log(x); },
    .gradient = [](Value* x, Value*, Value* dy) { return divide(dy, x); },
    .low = 0.5,
    .high = 4,
})};

}  // namespace
}  // namespace tessera::ops
