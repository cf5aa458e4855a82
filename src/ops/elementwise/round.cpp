#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{unary_primitive({
    .name = "round",
    .documentation = "The nearest integer, halves to the even one. The gradient is 0.",
    .scalar = [](double x) -> double { return std::nearbyint(x); },
})};

}  // namespace
}  // namespace tessera::ops
