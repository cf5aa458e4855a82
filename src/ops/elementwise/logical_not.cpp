#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "logical_not",
    .documentation = "True where x is false.",
    .scalar = [](double x) -> double { return x == 0 ? 1 : 0; },
    .low = 0,
    .high = 1,
    .types = kBooleanTypes,
    .makes_boolean = true,
})};

}  // namespace
}  // namespace tessera::ops
