#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "square",
    .documentation = "The square, y = x^2.",
    .scalar = [](double x) -> double { return x * x; },
    .gradient = [](Value* x, Value*, Value* dy) { return multiply(dy, multiply(x, 2)); },
})};

}  // namespace
}  // namespace tessera::ops
