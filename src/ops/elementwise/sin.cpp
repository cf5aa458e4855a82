#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "sin",
    .documentation = "The sine of x in radians.",
    .scalar = [](double x) -> double { return std::sin(x); },
    .gradient = [](Value* x, Value*, Value* dy) { return multiply(dy, cos(x)); },
})};

}  // namespace
}  // namespace tessera::ops
