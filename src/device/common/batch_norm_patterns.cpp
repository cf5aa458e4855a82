#include "tessera/device/common/batch_norm_patterns.h"

#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/passes/batch_norm_mask.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/settled_values.h"

namespace tessera::backend {
namespace {

bool adds_equal_types(const Node& add) {
  return add.input(0)->type() == add.output()->type() && add.input(1)->type() == add.output()->type();
}

// The relu's mask before the gradient is found from x where the relu is of that normalization alone.
void find_mask_from_x(FusionMatch& match) {
  if (match.value("masked") == nullptr) return;
  const std::optional<ReluMask> mask = find_relu_mask(match.value("masked"));
  const Node* norm = masked_normalization(*match.anchor, *mask);
  if (norm == nullptr) {
    match.add_role("mask", mask->greater->input(0));
    return;
  }
  match.add_role("mask_bias", norm->input(2));
  match.members.push_back(mask_by_input(*mask, *norm));
}

std::optional<FusionMatch> match_gradient(Node& gradient) {
  if (!is_read(gradient)) return std::nullopt;
  FusionMatch match{.members = {&gradient}, .outputs = {}, .roles = {}};
  match.add_roles_of(gradient);
  Value* incoming = gradient.input(0);
  const std::optional<ReluMask> mask = find_relu_mask(incoming);
  if (mask.has_value()) {
    match.members.insert(match.members.end(), {mask->select, mask->greater});
    match.add_role("masked", incoming);
    incoming = mask->select->input(1);
  }
  const Node* reader = mask.has_value() ? mask->select : &gradient;
  if (Node* sum = producer_of(incoming, "add");
      sum != nullptr && adds_equal_types(*sum) && sole_reader(incoming) == reader) {
    match.members.push_back(sum);
    match.add_role("dy", sum->input(0));
    match.add_role("dy2", sum->input(1));
  } else {
    match.add_role("dy", incoming);
  }
  if (match.members.size() == 1) return std::nullopt;
  match.outputs = visible_values(match.members);
  return match;
}

std::optional<FusionMatch> match_recomputed(Node& norm) {
  Node* relu = sole_reader(norm.output(), "relu");
  if (relu == nullptr || is_settled(*norm.input(3)) || is_settled(*norm.input(4))) return std::nullopt;
  FusionMatch match{.members = {&norm, relu}, .outputs = {relu->output()}, .roles = {}};
  match.add_roles_of(norm);
  match.add_role("relu", relu->output());
  return match;
}

std::optional<FusionMatch> match_forward(Node& norm) {
  FusionMatch match{.members = {&norm}, .outputs = {}, .roles = {}};
  match.add_roles_of(norm);
  if (Node* add = sole_reader(norm.output(), "add"); add != nullptr && adds_equal_types(*add)) {
    match.members.push_back(add);
    match.add_role("residual", add->input(add->input(0) == norm.output() ? 1 : 0));
  }
  if (Node* relu = sole_reader(match.members.back()->output(), "relu")) {
    match.members.push_back(relu);
    match.add_role("relu", relu->output());
  }
  if (match.members.size() == 1) return std::nullopt;
  match.outputs = {match.members.back()->output()};
  for (size_t statistic = 1; statistic < 3; ++statistic) {
    if (norm.graph().is_used(norm.output(statistic))) match.outputs.push_back(norm.output(statistic));
  }
  return match;
}

std::optional<FusionMatch> match_pooled_gradient(Node& gradient) {
  if (!is_read(gradient)) return std::nullopt;
  const std::optional<ReluMask> mask = find_relu_mask(gradient.input(0));
  if (!mask.has_value() || sole_reader(mask->select->output()) != &gradient) return std::nullopt;
  Node* pool = producer_of(mask->select->input(1), "max_pool_gradient");
  if (pool == nullptr || sole_reader(pool->output()) != mask->select) return std::nullopt;
  if (masked_normalization(gradient, *mask) == nullptr) return std::nullopt;
  FusionMatch match{.members = {pool, mask->greater, mask->select, &gradient}, .outputs = {}, .roles = {}};
  match.add_roles_of(gradient);
  match.add_role("masked", mask->select->output());
  match.add_role("pooling", pool->output());
  match.add_role("dy", pool->input(0));
  match.add_role("positions", pool->input(1));
  match.outputs = visible_values(match.members);
  return match;
}

std::optional<FusionMatch> match_pooled(Node& pool) {
  Node* relu = producer_of(pool.input(0), "relu");
  if (relu == nullptr || sole_reader(relu->output()) != &pool) return std::nullopt;
  const Node* norm = producer_of(relu->input(0), "batch_norm_training");
  if (norm == nullptr || sole_reader(norm->output()) != relu) return std::nullopt;
  FusionMatch match{.members = {relu, &pool}, .outputs = {pool.output(0), pool.output(1)}, .roles = {}};
  match.add_role("relu", relu->output());
  match.add_role("pooling", pool.output());
  return match;
}

// By the statistics that the normalization makes.
void normalize_by_statistics(FusionMatch& match) {
  Node& relu = match.maker("relu");
  Graph& graph = relu.graph();
  const Node& norm = *relu.input(0)->producer();
  Node* recomputed = nullptr;
  {
    const InsertionPoint here(graph, &relu);
    recomputed = recompute_normalization(norm)->producer();
  }
  graph.set_input(&relu, 0, recomputed->output());
  match.members.push_back(recomputed);
  match.add_roles_of(*recomputed);
}

}  // namespace

FusionPattern batch_norm_gradient_pattern() {
  return {.kind = "batch_norm_gradient",
          .anchor = "batch_norm_gradient",
          .roles = {"output_gradient", "x", "scale", "mean", "variance", "input_gradient", "scale_gradient",
                    "bias_gradient", "masked", "mask", "mask_bias", "dy", "dy2"},
          .match = match_gradient,
          .complete = find_mask_from_x};
}

FusionPattern recomputed_batch_norm_pattern() {
  return {.kind = "batch_norm_inference",
          .anchor = "batch_norm_inference",
          .roles = {"x", "scale", "bias", "mean", "variance", "y", "relu"},
          .match = match_recomputed};
}

FusionPattern batch_norm_pattern() {
  return {.kind = "batch_norm",
          .anchor = "batch_norm_training",
          .roles = {"x", "scale", "bias", "y", "mean", "variance", "residual", "relu"},
          .match = match_forward};
}

FusionPattern pooled_batch_norm_gradient_pattern() {
  return {.kind = "max_pool_batch_norm_gradient",
          .anchor = "batch_norm_gradient",
          .roles = {"output_gradient", "x", "scale", "mean", "variance", "input_gradient", "scale_gradient",
                    "bias_gradient", "masked", "mask_bias", "pooling", "dy", "positions"},
          .match = match_pooled_gradient,
          .complete = find_mask_from_x};
}

FusionPattern pooled_batch_norm_pattern() {
  return {.kind = "batch_norm_max_pool",
          .anchor = "max_pool",
          .roles = {"x", "scale", "bias", "mean", "variance", "y", "relu", "pooling"},
          .match = match_pooled,
          .complete = normalize_by_statistics};
}

void check_batch_norm_types(const Value& x, const Value& scale) {
  const DataType type = x.data_type();
  refuse_unless(type == DataType::fp32 || type == DataType::fp16 || type == DataType::bf16,
                "no batch normalization of {}", to_string(type));
  refuse_unless(scale.data_type() == DataType::fp32, "no statistics in {}", to_string(scale.data_type()));
  refuse_unless(x.type().element_count() > 0, "a tensor without elements");
}

BatchNormBody read_batch_norm(const Node& node) {
  check_batch_norm_types(in_role(node, "x"), in_role(node, "scale"));
  return {.x = input_in_role(node, "x"),
          .scale = input_in_role(node, "scale"),
          .bias = input_in_role(node, "bias"),
          .residual = optional_input_in_role(node, "residual"),
          .mean = output_in_role(node, "mean"),
          .variance = output_in_role(node, "variance"),
          .relu = has_role(node, "relu"),
          .epsilon = maker_of_role(node, "y").attributes().real("epsilon")};
}

BatchNormGradientBody read_batch_norm_gradient(const Node& node) {
  check_batch_norm_types(in_role(node, "x"), in_role(node, "scale"));
  return {.x = input_in_role(node, "x"),
          .scale = input_in_role(node, "scale"),
          .mean = input_in_role(node, "mean"),
          .variance = input_in_role(node, "variance"),
          .dy = input_in_role(node, node.body() == nullptr ? "output_gradient" : "dy"),
          .dy2 = optional_input_in_role(node, "dy2"),
          .y = optional_input_in_role(node, "mask"),
          .bias = optional_input_in_role(node, "mask_bias"),
          .dx = output_in_role(node, "input_gradient"),
          .dscale = output_in_role(node, "scale_gradient"),
          .dbias = output_in_role(node, "bias_gradient"),
          .dz = output_in_role(node, "output_gradient"),
          .epsilon = maker_of_role(node, "input_gradient").attributes().real("epsilon")};
}

PooledBatchNormBody read_pooled_batch_norm(const Node& node) {
  check_batch_norm_types(in_role(node, "x"), in_role(node, "scale"));
  return {.x = input_in_role(node, "x"),
          .scale = input_in_role(node, "scale"),
          .bias = input_in_role(node, "bias"),
          .mean = input_in_role(node, "mean"),
          .variance = input_in_role(node, "variance"),
          .epsilon = maker_of_role(node, "y").attributes().real("epsilon"),
          .pool = &maker_of_role(node, "pooling")};
}

PooledBatchNormGradientBody read_pooled_batch_norm_gradient(const Node& node) {
  return {.norm = read_batch_norm_gradient(node),
          .positions = input_in_role(node, "positions"),
          .pool = &maker_of_role(node, "pooling")};
}

}  // namespace tessera::backend
