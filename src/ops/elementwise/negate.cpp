#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "negate",
    .documentation = "The opposite, y = -x.",
    .scalar = [](double x) -> double { return -x; },
    .gradient = [](Value*, Value*, Value* dy) { return negate(dy); },
    .types = kFloatingTypes | kIndexTypes,
})};

}  // namespace
}  // namespace tessera::ops
