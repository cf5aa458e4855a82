#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "hard_swish",
    .documentation = "y = x * hard_sigmoid(x) with the slope 1/6.",
    .formula = [](Value* x, const Attributes&) -> Value* { return multiply(x, hard_sigmoid(x)); },
    .low = -5,
    .high = 5,
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
