#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "sigmoid",
    .documentation = "y = 1 / (1 + e^-x).",
    .scalar = [](double x) -> double { return 1 / (1 + std::exp(-x)); },
    .gradient = [](Value*, Value* y, Value* dy) { return multiply(dy, multiply(y, subtract(1, y))); },
    .traits = {.activation = true},
})};

}  // namespace
}  // namespace tessera::ops
