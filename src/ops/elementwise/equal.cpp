#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{binary_primitive({
    .name = "equal",
    .documentation = "True where a equals b, elementwise with NumPy broadcasting. False where either is NaN. "
                     "Makes booleans.",
    .scalar = [](double a, double b) -> double { return a == b ? 1 : 0; },
    .integer = [](int64_t a, int64_t b) -> int64_t { return a == b ? 1 : 0; },
    .types = kArithmeticTypes | kBooleanTypes,
    .makes_boolean = true,
})};

}  // namespace
}  // namespace tessera::ops
