#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_composite({
    .name = "clip",
    .documentation = "y = min(max(x, low), high). The gradient is 0 outside the limits.",
    .attributes = {{.name = "low",
                    .kind = AttributeKind::real,
                    .default_value = {},
                    .documentation = "the lower limit"},
                   {.name = "high",
                    .kind = AttributeKind::real,
                    .default_value = {},
                    .documentation = "the upper limit"}},
    .formula = [](Value* x, const Attributes& attributes) -> Value* {
      return minimum(maximum(x, constant_like(x, attributes.real("low"))),
                     constant_like(x, attributes.real("high")));
    },
    .gradient = [](Value* x, Value*, Value* dy, const Attributes& attributes) -> Value* {
      Value* inside = logical_and(greater_equal(x, constant_like(x, attributes.real("low"))),
                                  less_equal(x, constant_like(x, attributes.real("high"))));
      return select_or_zero(inside, dy);
    },
    .types = kNumericTypes,
    .examples = {{{"low", -1.0}, {"high", 1.5}}},
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
