#include <numbers>

#include "ops/elementwise/elementwise.h"

namespace tessera::ops {
namespace {

// y = x * F(x) with F = (1 + erf(x / sqrt(2))) / 2, or its approximation (1 + tanh(u)) / 2 with
// u = sqrt(2/pi) * (x + 0.044715 x^3) (Hendrycks and Gimpel, 2016), which is the sigmoid of 2 u: fewer
// operations, and no digits are lost where tanh is near -1.
constexpr double kCubic = 0.044715;
constexpr double kScale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;  // sqrt(2/pi)

Value* sigmoid_part(Value* x) {
  return sigmoid(multiply(x, add(multiply(square(x), 2 * kScale * kCubic), 2 * kScale)));
}
Value* erf_part(Value* x) {
  return erf(multiply(x, 1 / std::numbers::sqrt2));
}

Value* formula(Value* x, const Attributes& attributes) {
  if (attributes.boolean("approximate")) return multiply(x, sigmoid_part(x));
  return multiply(multiply(x, 0.5), add(erf_part(x), 1));
}

// F(x) + x F'(x)
Value* gradient_gelu(Value* x, Value*, Value* dy, const Attributes& attributes) {
  if (!attributes.boolean("approximate")) {
    Value* density = multiply(exp(multiply(square(x), -0.5)), kScale / 2);  // of the normal distribution
    return multiply(dy, add(multiply(add(erf_part(x), 1), 0.5), multiply(x, density)));
  }
  Value* s = sigmoid_part(x);
  Value* inner = add(multiply(square(x), 6 * kScale * kCubic), 2 * kScale);  // 2 u'
  Value* derivative = multiply(multiply(multiply(x, s), subtract(1, s)), inner);
  return multiply(dy, add(s, derivative));
}

const OperatorRegistration kRegistration{unary_composite({
    .name = "gelu",
    .documentation = "y = x * (1 + erf(x / sqrt(2))) / 2; when approximate, with tanh(sqrt(2/pi) * (x + "
                     "0.044715 x^3)) for the error function.",
    .attributes = {{.name = "approximate",
                    .kind = AttributeKind::boolean,
                    .default_value = false,
                    .documentation = "the tanh form"}},
    .formula = formula,
    .gradient = gradient_gelu,
    .examples = {{}, {{"approximate", true}}},
    .traits = {.low_precision = LowPrecision::follows, .activation = true},
})};

}  // namespace
}  // namespace tessera::ops
