#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "elu",
    .documentation = "y = x for positive x, alpha * (e^x - 1) elsewhere.",
    .attributes = {{.name = "alpha",
                    .kind = AttributeKind::real,
                    .default_value = 1.0,
                    .documentation = "the limit for large negative x is -alpha"}},
    .formula = [](Value* x, const Attributes& attributes) -> Value* {
      // The exponential of a large x would overflow in the branch that is not chosen; a device may not care,
      // a check for infinities does.
      Value* negative = multiply(add(exp(minimum(x, constant_like(x, 0))), -1), attributes.real("alpha"));
      return select(greater(x, constant_like(x, 0)), x, negative);
    },
    .gradient = [](Value* x, Value* y, Value* dy, const Attributes& attributes) -> Value* {
      return select(greater(x, constant_like(x, 0)), dy, multiply(dy, add(y, attributes.real("alpha"))));
    },
    .examples = {{}, {{"alpha", 0.5}}},
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
