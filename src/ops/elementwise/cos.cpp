#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "cos",
    .documentation = "The cosine of x in radians.",
    .scalar = [](double x) -> double { return std::cos(x); },
    .gradient = [](Value* x, Value*, Value* dy) { return negate(multiply(dy, sin(x))); },
})};

}  // namespace
}  // namespace tessera::ops
