#include "ops/reduction/softmax_rows.h"

namespace tessera::ops {
namespace {

// dx = y (dy - sum(dy y))
std::vector<Value*> gradient_softmax(const GradientCall& call) {
  Value* y = call.output();
  Value* dy = call.gradient();
  const ReduceOptions along{.axes = {call.node.attributes().integer("axis")}, .keep_dimensions = true};
  return {multiply(y, subtract(dy, reduce_sum(multiply(dy, y), along)))};
}

const OperatorRegistration kRegistration(softmax_schema({
    .name = "softmax",
    .documentation = "exp(x) / sum(exp(x)) along `axis`, safe from overflow.",
    .element = [](double x, double sum) { return std::exp(x) / sum; },
    .gradient = gradient_softmax,
}));

}  // namespace
}  // namespace tessera::ops
