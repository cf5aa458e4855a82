#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "exp",
    .documentation = "The exponential function, y = e^x.",
    .scalar = [](double x) -> double { return std::exp(x); },
    .gradient = [](Value*, Value* y, Value* dy) { return multiply(dy, y); },
})};

}  // namespace
}  // namespace tessera::ops
