#include "ops/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration registration{unary_primitive({
    .name = "negate",
    .documentation = "y = -x.",
    .scalar = [](double x) -> double { return -x; },
    .gradient = [](Value*, Value*, Value* dy) { return negate(dy); },
    .types = kFloatingTypes | kIndexTypes,
})};

}  // namespace
}  // namespace tessera::ops
