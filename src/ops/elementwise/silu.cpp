#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "silu",
    .documentation = "y = x * sigmoid(x), also called swish.",
    .formula = [](Value* x, const Attributes&) -> Value* { return multiply(x, sigmoid(x)); },
    .gradient = [](Value* x, Value*, Value* dy, const Attributes&) -> Value* {
      // Of x alone, so that y need not be kept.
      Value* s = sigmoid(x);
      return multiply(dy, multiply(s, add(multiply(x, subtract(1, s)), 1)));
    },
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
