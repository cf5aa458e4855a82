#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "is_finite",
    .documentation = "True unless x is infinite or NaN. Makes booleans.",
    .scalar = [](double x) -> double { return std::isfinite(x) ? 1 : 0; },
    .makes_boolean = true,
})};

}  // namespace
}  // namespace tessera::ops
