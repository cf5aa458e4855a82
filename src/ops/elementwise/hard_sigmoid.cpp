#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "hard_sigmoid",
    .documentation = "y = min(max(alpha * x + beta, 0), 1). The gradient is 0 where y is 0 or 1.",
    .attributes = {{.name = "alpha",
                    .kind = AttributeKind::real,
                    .default_value = 1.0 / 6,
                    .documentation = "the slope"},
                   {.name = "beta",
                    .kind = AttributeKind::real,
                    .default_value = 0.5,
                    .documentation = "the value at 0"}},
    .formula = [](Value* x, const Attributes& attributes) -> Value* {
      return clip(add(multiply(x, attributes.real("alpha")), attributes.real("beta")), 0, 1);
    },
    .gradient = [](Value*, Value* y, Value* dy, const Attributes& attributes) -> Value* {
      Value* inside = logical_and(greater(y, constant_like(y, 0)), less(y, constant_like(y, 1)));
      return select_or_zero(inside, multiply(dy, attributes.real("alpha")));
    },
    .low = -5,
    .high = 5,
    .examples = {{}, {{"alpha", 0.2}}},
    .traits = {.activation = true},
})};

}  // namespace
}  // namespace tessera::ops
