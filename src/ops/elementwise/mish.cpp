#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "mish",
    .documentation = "y = x * tanh(softplus(x)).",
    .formula = [](Value* x, const Attributes&) -> Value* { return multiply(x, tanh(softplus(x))); },
})};

}  // namespace
}  // namespace tessera::ops
