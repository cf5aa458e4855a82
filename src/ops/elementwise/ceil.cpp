#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "ceil",
    .documentation = "The smallest integer not below x. The gradient is 0.",
    .scalar = [](double x) -> double { return std::ceil(x); },
})};

}  // namespace
}  // namespace tessera::ops
