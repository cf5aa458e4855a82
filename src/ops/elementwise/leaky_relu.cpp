#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "leaky_relu",
    .documentation = "y = x for positive x, slope * x elsewhere.",
    .attributes = {{.name = "slope",
                    .kind = AttributeKind::real,
                    .default_value = 0.01,
                    .documentation = "of the negative side"}},
    .formula = [](Value* x, const Attributes& attributes) -> Value* {
      return select(greater(x, constant_like(x, 0)), x, multiply(x, attributes.real("slope")));
    },
    .gradient = [](Value* x, Value*, Value* dy, const Attributes& attributes) -> Value* {
      return select(greater(x, constant_like(x, 0)), dy, multiply(dy, attributes.real("slope")));
    },
    .examples = {{}, {{"slope", 1.5}}},
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
