#include "ops/reduction/softmax_rows.h"

namespace tessera::ops {
namespace {

// dx = dy - exp(y) sum(dy)
std::vector<Value*> gradient_log_softmax(const GradientCall& call) {
  Value* dy = call.gradient();
  const ReduceOptions along{.axes = {call.node.attributes().integer("axis")}, .keep_dimensions = true};
  return {subtract(dy, multiply(exp(call.output()), reduce_sum(dy, along)))};
}

const OperatorRegistration kRegistration(softmax_schema({
    .name = "log_softmax",
    .documentation = "x - log(sum(exp(x))) along `axis`, safe from overflow.",
    .element = [](double x, double sum) { return x - std::log(sum); },
    .gradient = gradient_log_softmax,
}));

}  // namespace
}  // namespace tessera::ops
