// Both gradients of a pointwise convolution in one kernel that reads the widest tensors of a network once.
//
// "summed_gradients": of a convolution whose input a relu made and a residual reads too. The data gradient
// gets the residual's gradient and the relu's mask; the gradients of the batch normalizations in front of
// that relu begin with sums of it, made beside; what is left of them is elementwise. The weight gradient
// reads the same tensors.
//
// "normalized_gradients": of the convolution in front of such a normalization. Its dy is that elementwise
// rest, made where both gradients read it.
#include <algorithm>

#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/fuse.h"

#include "passes/batch_norm_mask.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

// The weight gradient of the convolution whose pointwise data gradient the node is.
Node* weight_gradient_beside(const Node& data_gradient) {
  for (const Use& use : data_gradient.input(0)->uses()) {
    Node* reader = use.node;
    if (reader->operator_name() != "convolution_weight_gradient" ||
        reader->input(1) != data_gradient.input(0))
      continue;
    const Value* x = reader->input(0);
    if (x->type() == data_gradient.output()->type() &&
        reader->output()->shape() == data_gradient.input(1)->shape())
      return reader;
  }
  return nullptr;
}

// The nodes between the sums of a normalization's gradient and dx.
std::vector<Node*> elementwise_rest(const BatchNormGradients& gradients, const Node& norm) {
  const std::vector<const Value*> given{gradients.factor, gradients.correlation, gradients.offset,
                                        norm.input(0), norm.input(1)};
  std::vector<Node*> members;
  std::vector<Value*> open{gradients.dx};
  while (!open.empty()) {
    Value* value = open.back();
    open.pop_back();
    if (std::find(given.begin(), given.end(), value) != given.end()) continue;
    Node* node = value->producer();
    if (std::find(members.begin(), members.end(), node) != members.end()) continue;
    members.push_back(node);
    for (Value* input : node->inputs()) open.push_back(input);
  }
  return members;
}

// Nodes that recompute x, in place of the relu of a training normalization, for a gradient that is told
// so; none for any other x. The relu's result need not be kept then.
std::vector<Node*> recompute_input(Graph& graph, Node* weight_gradient) {
  const Node* relu = producer_of(weight_gradient->input(0), "relu");
  const Node* norm = relu == nullptr ? nullptr : producer_of(relu->input(0), "batch_norm_training");
  if (norm == nullptr || relu->input(0) != norm->output()) return {};
  const InsertionPoint here(graph, weight_gradient);
  Value* recomputed = recompute_normalization(*norm);
  Value* x = ops::relu(recomputed);
  graph.set_input(weight_gradient, 0, x);
  return {recomputed->producer(), x->producer()};
}

// dx, read by both gradients of a convolution and by nothing else, into their node.
void fuse_after(Graph& graph, const PassOptions& options, std::vector<Node*> members, Value* dx) {
  if (!options.takes_normalized_gradients || dx->uses().size() != 2 || dx->is_output_or_update()) return;
  for (const Use& use : dx->uses()) {
    Node* data = use.node;
    if (data->operator_name() != "convolution_data_gradient" || data->input(0) != dx || !is_pointwise(*data))
      continue;
    Node* weight = weight_gradient_beside(*data);
    if (weight == nullptr || !options.takes_normalized_gradients(*data)) continue;
    members.insert(members.end(), {data, weight});
    if (!fuses_without_cycle(members)) return;
    const std::vector<Node*> recomputed = recompute_input(graph, weight);
    members.insert(members.end(), recomputed.begin(), recomputed.end());
    fuse_nodes(graph, "normalized_gradients", members, {data->output(), weight->output()});
    return;
  }
}

void replace_gradient(Graph& graph, const PassOptions& options, Node* norm, Value* gradient_sums,
                      Value* products) {
  BatchNormGradients gradients;
  {
    const InsertionPoint here(graph, norm);
    graph.set_name_scope(norm->name());
    gradients = gradients_from_sums(*norm, gradient_sums, products);
    graph.set_name_scope("");
  }
  const std::vector<Node*> rest = elementwise_rest(gradients, *norm);
  graph.replace_all_uses(norm->output(0), gradients.dx);
  graph.replace_all_uses(norm->output(1), gradients.dscale);
  graph.replace_all_uses(norm->output(2), gradients.dbias);
  graph.erase(norm);
  fuse_after(graph, options, rest, gradients.dx);
}

// The gradients of normalizations that begin with this one, in the graph's order.
std::vector<Node*> normalizations_after(const Value* gradient) {
  std::vector<Node*> norms = readers_of(gradient);
  std::erase_if(norms, [&](const Node* norm) {
    return norm->operator_name() != "batch_norm_gradient" || norm->input(0) != gradient ||
           norm->input(1)->type() != gradient->type() || norm->input(2)->data_type() != DataType::fp32;
  });
  return norms;
}

// Nodes that recompute the relu's result where it is that of the sum of two normalizations, whose x the
// sums for their gradients take anyway; none elsewhere. The mask and the weight gradient read that then.
std::vector<Node*> recompute_mask(Graph& graph, const ReluMask& mask, Node* weight,
                                  const std::vector<Node*>& norms) {
  const Node* relu = producer_of(mask.greater->input(0), "relu");
  const Node* sum = relu == nullptr ? nullptr : producer_of(relu->input(0), "add");
  if (sum == nullptr) return {};
  std::vector<const Node*> forward;
  for (const Value* addend : sum->inputs()) {
    const Node* norm = producer_of(addend, "batch_norm_training");
    if (norm == nullptr || norm->output() != addend) return {};
    const bool known = std::any_of(norms.begin(), norms.end(), [&](const Node* gradient) {
      return gradient->input(1) == norm->input(0) && gradient->input(3) == norm->output(1);
    });
    if (!known) return {};
    forward.push_back(norm);
  }
  if (forward[0] == forward[1]) return {};
  const InsertionPoint here(graph, weight->stands_before(*mask.greater) ? weight : mask.greater);
  Value* left = recompute_normalization(*forward[0]);
  Value* right = recompute_normalization(*forward[1]);
  Value* both = ops::add(left, right);
  Value* y = ops::relu(both);
  graph.set_input(mask.greater, 0, y);
  graph.set_input(weight, 0, y);
  return {left->producer(), right->producer(), both->producer(), y->producer()};
}

// The node of the gradients of `data`'s convolution with `sum` and `mask` behind it, and the sums for `norms`
// after its two gradients.
const Node* fuse_summed(Graph& graph, Node* data, Node* weight, Node* sum, const ReluMask& mask,
                        const std::vector<Node*>& norms, bool recomputed_mask) {
  std::vector<Node*> members{data, sum, mask.greater, mask.select};
  if (weight != nullptr) members.push_back(weight);
  if (!fuses_without_cycle(members)) return nullptr;
  if (recomputed_mask) {
    const std::vector<Node*> recomputed = recompute_mask(graph, mask, weight, norms);
    members.insert(members.end(), recomputed.begin(), recomputed.end());
  }
  Value* dz = mask.select->output();
  std::vector<Value*> outputs{dz};
  const auto keep = [&](Value* value) {
    members.push_back(value->producer());
    return value;
  };
  const auto widened = [&](Value* value) {
    return value->data_type() == DataType::fp32 ? value : keep(ops::cast(value, DataType::fp32));
  };
  {
    const InsertionPoint here(graph, norms.front());
    graph.set_name_scope(mask.select->name());
    const ops::ReduceOptions over = over_all_but_channels(dz);
    Value* wide_dz = widened(dz);
    outputs.push_back(keep(ops::reduce_sum(wide_dz, over)));
    for (const Node* norm : norms) {
      Value* x = widened(norm->input(1));
      Value* centered = keep(ops::subtract(x, keep(ops::broadcast_to(norm->input(3), x->shape()))));
      outputs.push_back(keep(ops::reduce_sum(keep(ops::multiply(wide_dz, centered)), over)));
    }
    graph.set_name_scope("");
  }
  if (weight != nullptr) outputs.push_back(weight->output());
  return fuse_nodes(graph, "summed_gradients", members, outputs);
}

bool fuse_at(Graph& graph, const PassOptions& options, Node* sum) {
  const std::optional<ReluMask> mask = mask_after(sum->output());
  if (!mask.has_value() || sum->input(0)->type() != sum->input(1)->type()) return false;
  const std::vector<Node*> norms = normalizations_after(mask->select->output());
  if (norms.empty()) return false;
  for (const Value* addend : sum->inputs()) {
    Node* data = producer_of(addend, "convolution_data_gradient");
    if (data == nullptr || sole_reader(addend) != sum || !is_pointwise(*data)) continue;
    const FusedGradients taken = options.takes_summed_gradients(*data, norms.size());
    if (taken == FusedGradients::none) continue;
    const bool both = taken == FusedGradients::both;
    Node* weight = both ? weight_gradient_beside(*data) : nullptr;
    if (both && (weight == nullptr || weight->input(0) != mask->greater->input(0))) continue;
    const bool recomputed =
        both && norms.size() == 2 && options.recomputes_mask && options.recomputes_mask(*data);
    const Node* fused = fuse_summed(graph, data, weight, sum, *mask, norms, recomputed);
    if (fused == nullptr) continue;
    for (size_t i = 0; i < norms.size(); ++i)
      replace_gradient(graph, options, norms[i], fused->output(1), fused->output(2 + i));
    return true;
  }
  return false;
}

}  // namespace

bool fuse_pointwise_gradients(Graph& graph, const PassOptions& options) {
  if (!options.takes_summed_gradients) return false;
  bool changed = false;
  for (Node* sum : nodes_of(graph, "add")) changed = fuse_at(graph, options, sum) || changed;
  return changed;
}

}  // namespace tessera::passes
