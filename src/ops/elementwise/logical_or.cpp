#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{binary_primitive({
    .name = "logical_or",
    .documentation = "True where at least one is true, with NumPy broadcasting.",
    .scalar = [](double a, double b) -> double { return a != 0 || b != 0 ? 1 : 0; },
    .low = 0,
    .high = 1,
    .types = kBooleanTypes,
    .makes_boolean = true,
})};

}  // namespace
}  // namespace tessera::ops
