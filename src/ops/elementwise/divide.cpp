#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

const OperatorRegistration kRegistration{binary_primitive({
    .name = "divide",
    .documentation = "y = a / b with NumPy broadcasting. Integers round towards zero; a division of integers "
                     "by zero gives 0.",
    .scalar = [](double a, double b) -> double { return a / b; },
    .integer = [](int64_t a, int64_t b) -> int64_t {
      return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
    },
    .gradient =
        [](Value*, Value* b, Value* y, Value* dy) {
          Value* da = divide(dy, b);
          return std::pair{da, negate(multiply(da, y))};  // -dy a/b^2
        },
    .low = 0.5,
    .high = 3,
})};

}  // namespace
}  // namespace tessera::ops
