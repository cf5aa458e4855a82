#include "tessera/passes/batch_norm_mask.h"

#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

namespace tessera {

std::optional<ReluMask> find_relu_mask(Value* gradient) {
  ReluMask mask;
  mask.select = producer_of(gradient, "select");
  if (mask.select == nullptr || scalar_constant(mask.select->input(2)) != 0.0) return std::nullopt;
  if (mask.select->input(1)->type() != gradient->type()) return std::nullopt;
  mask.greater = producer_of(mask.select->input(0), "greater");
  if (mask.greater == nullptr || scalar_constant(mask.greater->input(1)) != 0.0) return std::nullopt;
  if (mask.greater->input(0)->type() != gradient->type() ||
      sole_reader(mask.greater->output()) != mask.select)
    return std::nullopt;
  return mask;
}

std::optional<ReluMask> mask_after(const Value* value) {
  Node* select = sole_reader(value, "select");
  if (select == nullptr || select->input(1) != value) return std::nullopt;
  return find_relu_mask(select->output());
}

Node* masked_normalization(const Node& gradient, const ReluMask& mask) {
  Node* relu = producer_of(mask.greater->input(0), "relu");
  Node* norm = relu == nullptr ? nullptr : producer_of(relu->input(0), "batch_norm_training");
  const bool same = norm != nullptr && relu->input(0) == norm->output() &&
                    gradient.input(1) == norm->input(0) && gradient.input(2) == norm->input(1) &&
                    gradient.input(3) == norm->output(1) && gradient.input(4) == norm->output(2) &&
                    gradient.attributes().real("epsilon") == norm->attributes().real("epsilon");
  return same ? norm : nullptr;
}

Value* recompute_normalization(const Node& norm) {
  return ops::batch_norm_inference(norm.input(0), norm.input(1), norm.input(2), norm.output(1),
                                   norm.output(2), norm.attributes().real("epsilon"));
}

Node* mask_by_input(const ReluMask& mask, const Node& norm) {
  Graph& graph = mask.greater->output()->graph();
  const InsertionPoint here(graph, mask.greater);
  Value* y = recompute_normalization(norm);
  graph.set_input(mask.greater, 0, y);
  return y->producer();
}

}  // namespace tessera
