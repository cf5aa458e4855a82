#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "tanh",
    .documentation = "The hyperbolic tangent.",
    .scalar = [](double x) -> double { return std::tanh(x); },
    .gradient = [](Value*, Value* y, Value* dy) { return multiply(dy, subtract(1, square(y))); },
    .traits = {.activation = true},
})};

}  // namespace
}  // namespace tessera::ops
