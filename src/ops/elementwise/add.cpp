#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{binary_primitive({
    .name = "add",
    .documentation = "y = a + b with NumPy broadcasting. Integers wrap.",
    .scalar = [](double a, double b) -> double { return a + b; },
    .integer = [](int64_t a, int64_t b) -> int64_t {
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    },
    .gradient =
        [](Value*, Value*, Value*, Value* dy) {
          return std::pair{dy, dy};
        },
    .traits = {.low_precision = LowPrecision::follows},
})};

}  // namespace
}  // namespace tessera::ops
