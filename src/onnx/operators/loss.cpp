// SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss.
#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// logarithms: [N, C, ...], labels: [N, ...].
Value* likelihood_loss(LowerCall& call, Value* logarithms, Value* labels) {
  Graph& graph = call.graph();
  const DataType type = logarithms->data_type();
  Value* classes = ops::cast(labels, DataType::int64);
  Value* zero = number(graph, type, 0);
  const Shape shape = shape_of(logarithms);
  Value* hot = ops::equal(unsqueeze(classes, {1}), counted(graph, shape, 1));
  Value* picked = ops::reduce_sum(ops::select(hot, logarithms, zero), {{1}, false});
  Value* weights = broadcast(number(graph, type, 1), shape_of(classes));
  if (call.has(2)) {
    Shape row(shape.size(), 1);
    row[1] = shape[1];
    weights = ops::reduce_sum(ops::select(hot, reshape(call.operand(2), row), zero), {{1}, false});
  }
  if (call.has_argument("ignore_index")) {
    Value* ignored = ops::equal(
        classes, number(graph, DataType::int64, static_cast<double>(call.integer("ignore_index"))));
    weights = ops::select(ignored, zero, weights);
  }
  Value* losses = ops::negate(ops::multiply(picked, weights));
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return losses;
  Value* sum = ops::reduce_sum(losses);
  return reduction == "sum" ? sum : ops::divide(sum, ops::reduce_sum(weights));
}

void lower_cross_entropy(LowerCall& call) {
  Value* logarithms = ops::log_softmax(call.operand(0), 1);
  call.result(0, likelihood_loss(call, logarithms, call.operand(1)));
  call.result(1, logarithms);
}

const RuleRegistrations kRegistration{
    {.name = "SoftmaxCrossEntropyLoss", .lower = lower_cross_entropy},
    {.name = "NegativeLogLikelihoodLoss",
     .lower =
         [](LowerCall& call) { call.result(0, likelihood_loss(call, call.operand(0), call.operand(1))); }},
};

}  // namespace
}  // namespace tessera::onnx
