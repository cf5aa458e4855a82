#include <algorithm>

#include "tessera/device/common/convolution_patterns.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/batch_norm_mask.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

// The addend that a convolution without strides makes for the sum alone: its kernel writes every element
// once, and in order.
Node* unstrided_data_gradient(const Node& sum) {
  for (const Value* addend : sum.inputs()) {
    Node* gradient = producer_of(addend, "convolution_data_gradient");
    if (gradient == nullptr || sole_reader(addend) != &sum || addend->type() != sum.output()->type())
      continue;
    const std::vector<int64_t> strides = gradient->attributes().integers("strides");
    if (std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; }))
      return gradient;
  }
  return nullptr;
}

// The data gradient with the sum, and the mask where there is one.
FusionMatch match_of(Node& data, Node& sum, const std::optional<ReluMask>& mask) {
  FusionMatch match{.members = {&data, &sum}, .outputs = {sum.output()}, .roles = {}};
  match.add_roles_of(data);
  match.add_role("addend", sum.input(sum.input(0) == data.output() ? 1 : 0));
  if (!mask.has_value()) return match;
  match.members.insert(match.members.end(), {mask->greater, mask->select});
  match.outputs = {mask->select->output()};
  return match;
}

std::optional<FusionMatch> match_masked(Node& sum) {
  if (sum.input(0)->type() != sum.input(1)->type()) return std::nullopt;
  Node* data = unstrided_data_gradient(sum);
  if (data == nullptr) return std::nullopt;
  const std::optional<ReluMask> mask = mask_after(sum.output());
  FusionMatch match = match_of(*data, sum, mask);
  if (mask.has_value()) match.add_role("mask", mask->greater->input(0));
  return match;
}

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

// The gradients of normalizations that begin with this one, in the graph's order.
std::vector<Node*> normalizations_after(const Value* gradient) {
  std::vector<Node*> norms = readers_of(gradient);
  std::erase_if(norms, [&](const Node* norm) {
    return norm->operator_name() != "batch_norm_gradient" || norm->input(0) != gradient ||
           norm->input(1)->type() != gradient->type() || norm->input(2)->data_type() != DataType::fp32;
  });
  return norms;
}

std::optional<FusionMatch> match_summed(Node& sum, const TakesGradients& takes, bool weights) {
  const std::optional<ReluMask> mask = mask_after(sum.output());
  if (!mask.has_value() || sum.input(0)->type() != sum.input(1)->type()) return std::nullopt;
  const std::vector<Node*> norms = normalizations_after(mask->select->output());
  if (norms.empty()) return std::nullopt;
  for (const Value* addend : sum.inputs()) {
    Node* data = producer_of(addend, "convolution_data_gradient");
    if (data == nullptr || sole_reader(addend) != &sum || !is_pointwise(*data)) continue;
    if (takes && !takes(*data, norms.size())) continue;
    Node* weight = weights ? weight_gradient_beside(*data) : nullptr;
    if (weights && (weight == nullptr || weight->input(0) != mask->greater->input(0))) continue;
    FusionMatch match = match_of(*data, sum, mask);
    match.add_role("masked", mask->select->output());
    for (const Node* norm : norms) {
      match.add_role("normalized", norm->input(1));
      match.add_role("mean", norm->input(3));
    }
    if (weight != nullptr) {
      match.members.push_back(weight);
      match.add_role("weight_gradient", weight->output());
    }
    return match;
  }
  return std::nullopt;
}

// The training normalizations whose sum's relu the mask is of, in the order of their gradients; empty where
// it is of something else.
std::vector<const Node*> masked_normalizations(const ReluMask& mask, const std::vector<Node*>& gradients) {
  const Node* relu = producer_of(mask.greater->input(0), "relu");
  const Node* sum = relu == nullptr ? nullptr : producer_of(relu->input(0), "add");
  if (sum == nullptr) return {};
  std::vector<const Node*> norms;
  for (const Node* gradient : gradients) {
    for (const Value* addend : sum->inputs()) {
      const Node* norm = producer_of(addend, "batch_norm_training");
      if (norm != nullptr && norm->output() == addend && gradient->input(1) == norm->input(0) &&
          gradient->input(3) == norm->output(1))
        norms.push_back(norm);
    }
  }
  return norms.size() == 2 && norms[0] != norms[1] ? norms : std::vector<const Node*>{};
}

// Recomputes the relu's result where it is that of the sum of two normalizations, whose x the sums for their
// gradients take anyway. The mask and the weight gradient read that then.
bool recompute_mask(FusionMatch& match, const ReluMask& mask, const std::vector<Node*>& gradients) {
  const std::vector<const Node*> norms = masked_normalizations(mask, gradients);
  if (norms.empty()) return false;
  Node& weight = match.maker("weight_gradient");
  Graph& graph = weight.graph();
  const InsertionPoint here(graph, weight.stands_before(*mask.greater) ? &weight : mask.greater);
  const Value* sum = mask.greater->input(0)->producer()->input(0);
  const bool swapped = sum->producer()->input(0) != norms[0]->output();
  Value* left = recompute_normalization(*norms[swapped ? 1 : 0]);
  Value* right = recompute_normalization(*norms[swapped ? 0 : 1]);
  Value* both = ops::add(left, right);
  Value* y = ops::relu(both);
  graph.set_input(mask.greater, 0, y);
  graph.set_input(&weight, 0, y);
  match.add_role("recomputed", swapped ? right : left);
  match.add_role("recomputed", swapped ? left : right);
  match.members.insert(match.members.end(),
                       {left->producer(), right->producer(), both->producer(), y->producer()});
  return true;
}

// The sums that the gradients of the normalizations begin with, in fp32.
void add_sums(FusionMatch& match, const std::vector<Node*>& norms) {
  Value* dz = match.value("masked");
  const auto keep = [&](Value* value) {
    match.members.push_back(value->producer());
    return value;
  };
  const auto widened = [&](Value* value) {
    return value->data_type() == DataType::fp32 ? value : keep(ops::cast(value, DataType::fp32));
  };
  Graph& graph = dz->graph();
  const InsertionPoint here(graph, norms.front());
  graph.set_name_scope(dz->name());
  const ops::ReduceOptions over = over_all_but_channels(dz);
  Value* wide_dz = widened(dz);
  match.outputs.push_back(keep(ops::reduce_sum(wide_dz, over)));
  for (const Node* norm : norms) {
    Value* x = widened(norm->input(1));
    Value* centered = keep(ops::subtract(x, keep(ops::broadcast_to(norm->input(3), x->shape()))));
    match.outputs.push_back(keep(ops::reduce_sum(keep(ops::multiply(wide_dz, centered)), over)));
  }
  graph.set_name_scope("");
}

void complete_summed(FusionMatch& match, const TakesGradients& recomputes_mask) {
  Value* dz = match.value("masked");
  const ReluMask mask = *find_relu_mask(dz);
  const std::vector<Node*> norms = normalizations_after(dz);
  Value* weights = match.value("weight_gradient");
  const bool recomputes = weights != nullptr && norms.size() == 2 && recomputes_mask &&
                          recomputes_mask(match.maker("input_gradient"), norms.size());
  if (!recomputes || !recompute_mask(match, mask, norms)) match.add_role("mask", mask.greater->input(0));
  add_sums(match, norms);
  if (weights != nullptr) match.outputs.push_back(weights);
}

// What is left of each normalization's gradient is elementwise.
void replace_gradients(const FusionMatch&, Node& fused) {
  Graph& graph = fused.graph();
  const std::vector<size_t> x = inputs_in_role(fused, "normalized");
  const std::vector<size_t> mean = inputs_in_role(fused, "mean");
  for (Node* norm : normalizations_after(fused.output(0))) {
    size_t product = 0;
    while (fused.input(x.at(product)) != norm->input(1) || fused.input(mean.at(product)) != norm->input(3))
      ++product;
    BatchNormGradients gradients;
    {
      const InsertionPoint here(graph, norm);
      graph.set_name_scope(norm->name());
      gradients = gradients_from_sums(*norm, fused.output(1), fused.output(2 + product));
      graph.set_name_scope("");
    }
    graph.replace_all_uses(norm->output(0), gradients.dx);
    graph.replace_all_uses(norm->output(1), gradients.dscale);
    graph.replace_all_uses(norm->output(2), gradients.dbias);
    graph.erase(norm);
  }
}

FusionPattern summed_pattern(const TakesGradients& takes, const TakesGradients& recomputes_mask,
                             bool weights) {
  return {.kind = "summed_gradients",
          .anchor = "add",
          .roles = {"output_gradient", "weight", "input_gradient", "addend", "masked", "mask", "recomputed",
                    "normalized", "mean", "weight_gradient"},
          .match = [=](Node& sum) { return match_summed(sum, takes, weights); },
          .complete = [=](FusionMatch& match) { complete_summed(match, recomputes_mask); },
          .finish = replace_gradients};
}

// dy factor + x correlation + offset, as gradients_from_sums writes it.
std::optional<FusionMatch> match_rest_of_gradient(Value* dx) {
  const bool casts = dx->data_type() != DataType::fp32;
  FusionMatch match;
  const auto made_by = [&](Value* value, std::string_view operator_name) -> Node* {
    Node* node = value == nullptr ? nullptr : producer_of(value, operator_name);
    if (node != nullptr) match.members.push_back(node);
    return node;
  };
  const auto operand = [](Node* node, size_t index) {
    return node == nullptr ? nullptr : node->input(index);
  };
  const auto before_cast = [&](Value* value) { return casts ? operand(made_by(value, "cast"), 0) : value; };
  const auto channels = [&](Value* value) { return operand(made_by(value, "broadcast_to"), 0); };
  Node* sum = made_by(before_cast(dx), "add");
  Node* products = made_by(operand(sum, 0), "add");
  Node* of_gradient = made_by(operand(products, 0), "multiply");
  Node* of_x = made_by(operand(products, 1), "multiply");
  match.add_role("masked", before_cast(operand(of_gradient, 0)));
  match.add_role("normalized", before_cast(operand(of_x, 0)));
  match.add_role("factor", channels(operand(of_gradient, 1)));
  match.add_role("correlation", channels(operand(of_x, 1)));
  match.add_role("offset", channels(operand(sum, 1)));
  const bool found = std::all_of(match.roles.begin(), match.roles.end(),
                                 [](const FusionRole& role) { return role.value != nullptr; });
  const bool whole =
      found && match.value("masked")->type() == dx->type() && match.value("normalized")->type() == dx->type();
  return whole ? std::optional(std::move(match)) : std::nullopt;
}

// Of a gradient that both gradients of a convolution read, and nothing else.
std::optional<FusionMatch> match_normalized(Node& data) {
  Value* dx = data.input(0);
  if (dx->uses().size() != 2 || dx->is_output_or_update() || !is_pointwise(data)) return std::nullopt;
  Node* weight = weight_gradient_beside(data);
  std::optional<FusionMatch> match = weight == nullptr ? std::nullopt : match_rest_of_gradient(dx);
  if (!match.has_value()) return std::nullopt;
  match->members.insert(match->members.end(), {&data, weight});
  match->outputs = {data.output(), weight->output()};
  const std::vector<Value*> visible = visible_values(match->members);
  if (visible.size() > 2 || std::find(visible.begin(), visible.end(), dx) != visible.end())
    return std::nullopt;
  match->add_roles_of(data);
  match->add_role("weight_gradient", weight->output());
  return match;
}

// Recomputes x where it is the relu of a training normalization, for a gradient that is told so. The relu's
// result need not be kept then.
void recompute_input(FusionMatch& match) {
  Node& weight = match.maker("weight_gradient");
  const Node* relu = producer_of(weight.input(0), "relu");
  const Node* norm = relu == nullptr ? nullptr : producer_of(relu->input(0), "batch_norm_training");
  if (norm == nullptr || relu->input(0) != norm->output()) {
    match.add_role("x", weight.input(0));
    return;
  }
  const InsertionPoint here(weight.graph(), &weight);
  Value* recomputed = recompute_normalization(*norm);
  Value* x = ops::relu(recomputed);
  weight.graph().set_input(&weight, 0, x);
  match.members.insert(match.members.end(), {recomputed->producer(), x->producer()});
  match.add_role("recomputed", recomputed);
}

std::vector<NormalizedTensor> read_recomputed(const Node& node) {
  std::vector<NormalizedTensor> norms;
  for (const Value* value : values_in_role(node, "recomputed")) {
    const Node& norm = *value->producer();
    norms.push_back({.x = input_index(node, norm.input(0)),
                     .scale = input_index(node, norm.input(1)),
                     .bias = input_index(node, norm.input(2)),
                     .mean = input_index(node, norm.input(3)),
                     .variance = input_index(node, norm.input(4)),
                     .epsilon = norm.attributes().real("epsilon")});
  }
  return norms;
}

// The pointwise data gradient that reads the same gradient as the weight gradient, and nothing else does.
const Node* data_gradient_beside(const Node& weight_gradient) {
  const Value* dy = weight_gradient.input(1);
  if (dy->uses().size() != 2 || dy->is_output_or_update()) return nullptr;
  for (const Use& use : dy->uses()) {
    if (use.node->operator_name() == "convolution_data_gradient" && is_pointwise(*use.node) &&
        weight_gradient_beside(*use.node) == &weight_gradient)
      return use.node;
  }
  return nullptr;
}

}  // namespace

bool recomputes_activation(const Node& weight_gradient, const TakesGradients& takes_summed,
                           const TakesGradients& takes_normalized) {
  const Node* data = data_gradient_beside(weight_gradient);
  const Node* norm = data == nullptr ? nullptr : producer_of(data->input(0), "batch_norm_gradient");
  if (norm == nullptr || norm->output(0) != data->input(0) || !takes_normalized(*data, 1)) return false;
  const std::optional<ReluMask> mask = find_relu_mask(norm->input(0));
  if (!mask.has_value()) return false;
  Node* sum = producer_of(mask->select->input(1), "add");
  return sum != nullptr && match_summed(*sum, takes_summed, false).has_value();
}

FusionPattern masked_data_gradient_pattern() {
  return {.kind = "convolution_data_gradient",
          .anchor = "add",
          .roles = {"output_gradient", "weight", "input_gradient", "addend", "mask"},
          .match = match_masked};
}

FusionPattern summed_gradients_pattern(TakesGradients takes, TakesGradients recomputes_mask) {
  return summed_pattern(takes, recomputes_mask, true);
}

FusionPattern summed_data_gradient_pattern(TakesGradients takes) {
  return summed_pattern(takes, {}, false);
}

FusionPattern normalized_gradients_pattern(TakesGradients takes) {
  FusionPattern pattern{.kind = "normalized_gradients",
                        .anchor = "convolution_data_gradient",
                        .roles = {"output_gradient", "weight", "input_gradient", "masked", "normalized",
                                  "factor", "correlation", "offset", "weight_gradient", "x", "recomputed"},
                        .match = match_normalized};
  pattern.worth = [takes = std::move(takes)](const FusionMatch& match) {
    return takes(match.maker("input_gradient"), 1);
  };
  pattern.complete = recompute_input;
  return pattern;
}

MaskedSumBody read_masked_sum(const Node& node) {
  return {.data = &maker_of_role(node, "input_gradient"),
          .addend = input_in_role(node, "addend"),
          .mask = has_role(node, "mask") ? &in_role(node, "mask") : nullptr};
}

SummedGradientsBody read_summed_gradients(const Node& node) {
  return {.sum = read_masked_sum(node),
          .dy = input_in_role(node, "output_gradient"),
          .weight = input_in_role(node, "weight"),
          .weights = has_role(node, "weight_gradient"),
          .x = inputs_in_role(node, "normalized"),
          .mean = inputs_in_role(node, "mean"),
          .mask = optional_input_in_role(node, "mask"),
          .recomputed = read_recomputed(node)};
}

NormalizedGradientsBody read_normalized_gradients(const Node& node) {
  const std::vector<NormalizedTensor> recomputed = read_recomputed(node);
  return {.data = &maker_of_role(node, "input_gradient"),
          .dy = input_in_role(node, "masked"),
          .y = input_in_role(node, "normalized"),
          .factor = input_in_role(node, "factor"),
          .correlation = input_in_role(node, "correlation"),
          .offset = input_in_role(node, "offset"),
          .weight = input_in_role(node, "weight"),
          .x = optional_input_in_role(node, "x"),
          .recomputed = recomputed.empty() ? std::nullopt : std::optional(recomputed.front())};
}

}  // namespace tessera::backend
