#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "floor",
    .documentation = "The largest integer not above x. The gradient is 0.",
    .scalar = [](double x) -> double { return std::floor(x); },
})};

}  // namespace
}  // namespace tessera::ops
