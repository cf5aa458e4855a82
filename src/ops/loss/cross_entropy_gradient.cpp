#include "tessera/ops/functions.h"

#include "ops/loss/cross_entropy_rows.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_cross_entropy_gradient(const InferenceCall& call) {
  check_cross_entropy(call);
  call.require(call.input(2) == row_losses(call), "loss_gradient must be " + to_string(row_losses(call)));
  return {call.input(0)};
}

void reference_cross_entropy_gradient(const ReferenceCall& call) {
  const std::vector<double> logits = call.inputs[0]->to_doubles();
  const int64_t rows = call.inputs[0]->shape()[0];
  const int64_t columns = call.inputs[0]->shape()[1];
  const int64_t classes = class_count(call.attributes(), columns);
  const double smoothing = call.attributes().real("smoothing");
  for (int64_t row = 0; row < rows; ++row) {
    const auto label = static_cast<int64_t>(call.inputs[1]->at(row));
    if (!label_counts(call, row, label, classes)) continue;
    const std::span<const double> own(logits.data() + row * columns, static_cast<size_t>(classes));
    const LogProbabilities logarithms(own);
    const double dy = call.inputs[2]->at(row);
    for (int64_t k = 0; k < classes; ++k) {
      const double target = (k == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
      const double probability = std::exp(logarithms.of(own[static_cast<size_t>(k)]));
      call.outputs[0]->set(row * columns + k, dy * (probability - target));
    }
  }
}

const OperatorRegistration kRegistration({
    .name = "cross_entropy_gradient",
    .documentation = "The gradient of cross_entropy to the logits: loss_gradient times (softmax(logits) - "
                     "target), zero for ignored rows and in columns that are no classes.",
    .operator_class = OperatorClass::loss,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "logits"},
               {.name = "labels", .types = kIndexTypes, .type_variable = ""},
               {.name = "loss_gradient", .types = kStatisticsTypes, .type_variable = "S"}},
    .attributes = cross_entropy_attributes(),
    .outputs = {"logits_gradient"},
    .infer = infer_cross_entropy_gradient,
    .flops =
        [](const Node& node) { return 5.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference = reference_cross_entropy_gradient,
    .examples = {{.inputs = {{{5, 7}, -3, 3}, {{5}, 0, 6, DataType::int32}, {{5}}}},
                 {.inputs = {{{33, 3}, -9, 9}, {{33}, 0, 2, DataType::int64}, {{33}}},
                  .attributes = {{"smoothing", 0.1}, {"ignored_label", 1}}},
                 {.inputs = {{{5, 9}, -3, 3}, {{5}, 0, 6, DataType::int32}, {{5}}},
                  .attributes = {{"smoothing", 0.1}, {"classes", 7}}},
                 {.inputs = {{{2, 1000}, -3, 3}, {{2}, 0, 999, DataType::int32}, {{2}}}}},
});

}  // namespace
}  // namespace tessera::ops
