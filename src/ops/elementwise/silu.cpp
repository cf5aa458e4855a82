#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "silu",
    .documentation = "y = x * sigmoid(x), also called swish.",
    .formula = [](Value* x, const Attributes&) -> Value* { return multiply(x, sigmoid(x)); },
    .gradient = [](Value* x, Value* y, Value* dy, const Attributes&) -> Value* {
      Value* s = sigmoid(x);
      return multiply(dy, add(s, multiply(y, subtract(1, s))));
    },
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
