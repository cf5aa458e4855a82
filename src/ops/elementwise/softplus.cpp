#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "softplus",
    .documentation = "y = log(1 + e^x), as max(x, 0) + log(1 + e^-|x|), which does not overflow.",
    .formula = [](Value* x, const Attributes&) -> Value* {
      return add(relu(x), log(add(exp(negate(absolute(x))), 1)));
    },
    .gradient = [](Value* x, Value*, Value* dy, const Attributes&) -> Value* {
      return multiply(dy, sigmoid(x));
    },
})};

}  // namespace
}  // namespace tessera::ops
