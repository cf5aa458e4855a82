#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "absolute",
    .documentation = "y = |x|. The gradient at 0 is 0.",
    .scalar = [](double x) -> double { return std::abs(x); },
    .gradient = [](Value* x, Value*, Value* dy) { return multiply(dy, sign(x)); },
    .types = kFloatingTypes | kIndexTypes,
})};

}  // namespace
}  // namespace tessera::ops
