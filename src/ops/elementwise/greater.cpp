#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{binary_primitive({
    .name = "greater",
    .documentation = "True where a is greater than b, elementwise with NumPy broadcasting. False where "
                     "either is NaN. Makes booleans.",
    .scalar = [](double a, double b) -> double { return a > b ? 1 : 0; },
    .integer = [](int64_t a, int64_t b) -> int64_t { return a > b ? 1 : 0; },
    .makes_boolean = true,
    .traits = {.low_precision = LowPrecision::follows},
})};

}  // namespace
}  // namespace tessera::ops
