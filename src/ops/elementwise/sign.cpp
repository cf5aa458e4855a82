#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "sign",
    .documentation = "-1, 0 or 1 by the sign of x; NaN for NaN. The gradient is 0.",
    .scalar = [](double x) -> double { return x > 0   ? 1
                                              : x < 0 ? -1
                                                      : x; },
    .types = kFloatingTypes | kIndexTypes,
})};

}  // namespace
}  // namespace tessera::ops
