#include "tessera/ops/functions.h"

#include "ops/loss/cross_entropy_rows.h"

namespace tessera::ops {
namespace {

std::vector<TensorType> infer_cross_entropy(const InferenceCall& call) {
  check_cross_entropy(call);
  return {row_losses(call)};
}

std::vector<Value*> gradient_cross_entropy(const GradientCall& call) {
  const Attributes& attributes = call.node.attributes();
  const CrossEntropyOptions options{.smoothing = attributes.real("smoothing"),
                                    .ignored_label = attributes.integer("ignored_label"),
                                    .classes = attributes.integer("classes")};
  return {cross_entropy_gradient(call.input(0), call.input(1), call.gradient(), options), nullptr};
}

void reference_cross_entropy(const ReferenceCall& call) {
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
    double loss = (smoothing - 1) * logarithms.of(own[static_cast<size_t>(label)]);
    if (smoothing > 0) {
      for (double logit : own) loss -= smoothing / static_cast<double>(classes) * logarithms.of(logit);
    }
    call.outputs[0]->set(row, loss);
  }
}

const OperatorRegistration kRegistration({
    .name = "cross_entropy",
    .documentation =
        "Cross-entropy of softmax(logits) against labels, one number per row. With smoothing s "
        "and K classes the target is (1 - s) for the label and s/K more for every class "
        "(Szegedy et al. 2015, arXiv:1512.00567). A row whose label is `ignored_label` gives "
        "0. Any other label outside [0, K) is an error in the reference and NaN on devices. Of "
        "16-bit logits the loss is fp32. Columns of logits after the first `classes` are not read: a "
        "product gives more than there are classes where whole rows are faster.",
    .operator_class = OperatorClass::loss,
    .traits = {.low_precision = LowPrecision::follows},
    .inputs = {{.name = "logits"}, {.name = "labels", .types = kIndexTypes, .type_variable = ""}},
    .attributes = cross_entropy_attributes(),
    .outputs = {"loss"},
    .infer = infer_cross_entropy,
    .gradient = gradient_cross_entropy,
    .flops =
        [](const Node& node) { return 4.0 * static_cast<double>(node.input(0)->type().element_count()); },
    .reference = reference_cross_entropy,
    .examples = {{.inputs = {{{5, 7}, -3, 3}, {{5}, 0, 6, DataType::int32}}},
                 {.inputs = {{{5, 7}, -3, 3}, {{5}, 0, 6, DataType::int64}},
                  .attributes = {{"smoothing", 0.1}}},
                 {.inputs = {{{33, 3}, -9, 9}, {{33}, 0, 2, DataType::int32}},
                  .attributes = {{"smoothing", 0.2}, {"ignored_label", 1}}},
                 {.inputs = {{{5, 9}, -3, 3}, {{5}, 0, 6, DataType::int32}},
                  .attributes = {{"smoothing", 0.1}, {"classes", 7}}},
                 {.inputs = {{{2, 1000}, -3, 3}, {{2}, 0, 999, DataType::int32}}}},
});

}  // namespace
}  // namespace tessera::ops
