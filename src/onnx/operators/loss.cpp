// SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss, Dropout.
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

// In training a part of the elements is dropped at random: not yet.
void lower_dropout(LowerCall& call) {
  if (call.version() >= 12 && call.has(2) && call.known(2).at(0) != 0) {
    const double ratio = call.has(1) ? call.known(1).at(0) : 0.5;
    require(ratio == 0, ErrorCode::unsupported, "{}: dropout in training is not supported",
            call.instruction().place());
  }
  Value* x = call.operand(0);
  call.result(0, x);
  // Before opset 10 the mask was of the operand's type.
  const DataType mask = call.version() < 10 ? x->data_type() : DataType::boolean;
  if (call.wants(1)) call.result(1, broadcast(number(call.graph(), mask, 1), shape_of(x)));
}

const RuleRegistrations kRegistration{
    {.name = "SoftmaxCrossEntropyLoss", .lower = lower_cross_entropy},
    {.name = "NegativeLogLikelihoodLoss",
     .lower =
         [](LowerCall& call) { call.result(0, likelihood_loss(call, call.operand(0), call.operand(1))); }},
    {.name = "Dropout", .lower = lower_dropout},
};

}  // namespace
}  // namespace tessera::onnx
