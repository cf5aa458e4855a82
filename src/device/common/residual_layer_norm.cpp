#include "tessera/device/common/residual_layer_norm.h"

#include <algorithm>

#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

bool adds_equal_types(const Node& add) {
  return add.input(0)->type() == add.output()->type() && add.input(1)->type() == add.output()->type();
}

Value* other_operand(const Node& add, const Value* operand) {
  return add.input(add.input(0) == operand ? 1 : 0);
}

// The dropout whose result the sum alone reads.
Node* dropped_operand(const Node& sum) {
  for (const Value* operand : sum.inputs()) {
    Node* dropout = producer_of(operand, "dropout");
    if (dropout != nullptr && sole_reader(operand) == &sum) return dropout;
  }
  return nullptr;
}

// The addition of numbers by channel whose result the dropout alone reads, and which of its operands they
// are.
struct BiasAddition {
  Node* add = nullptr;
  Value* bias = nullptr;
};
std::optional<BiasAddition> bias_before(const Node& dropout) {
  Value* biased = dropout.input(0);
  Node* add = producer_of(biased, "add");
  if (add == nullptr || sole_reader(biased) != &dropout) return std::nullopt;
  for (Value* operand : add->inputs()) {
    if (is_per_channel(*operand, biased->shape()) && other_operand(*add, operand)->type() == biased->type())
      return BiasAddition{add, operand};
  }
  return std::nullopt;
}

std::optional<FusionMatch> match_forward(Node& norm) {
  Node* sum = producer_of(norm.input(0), "add");
  if (sum == nullptr || !adds_equal_types(*sum) || !is_over_last_axis(norm)) return std::nullopt;
  Node* dropout = dropped_operand(*sum);
  if (dropout == nullptr || !norm.graph().is_used(norm.output())) return std::nullopt;
  FusionMatch match{.members = {dropout, sum, &norm}, .outputs = {}, .roles = {}};
  match.add_roles_of(norm);
  match.add_role("residual", other_operand(*sum, dropout->output()));
  match.add_role("dropped", dropout->output());
  match.add_role("counter", dropout->input(1));
  const std::optional<BiasAddition> biased = bias_before(*dropout);
  if (biased.has_value()) {
    match.members.push_back(biased->add);
    match.add_role("branch_bias", biased->bias);
  }
  match.add_role("branch",
                 biased.has_value() ? other_operand(*biased->add, biased->bias) : dropout->input(0));
  match.outputs = visible_values(match.members);
  return match;
}

// The sum of a gradient over all axes but the last, not in 16 bits, with the cast before it.
std::vector<Node*> channel_sum_of(const Value* gradient) {
  std::vector<int64_t> leading;
  for (int64_t axis = 0; axis + 1 < gradient->type().rank(); ++axis) leading.push_back(axis);
  for (Node* reader : readers_of(gradient)) {
    std::vector<Node*> found{reader};
    if (reader->operator_name() == "cast") {
      reader = sole_reader(reader->output(), "reduce_sum");
      found.push_back(reader);
    }
    if (reader != nullptr && reader->operator_name() == "reduce_sum" &&
        size_of(reader->output()->data_type()) > 2 && reader->attributes().integers("axes") == leading)
      return found;
  }
  return {};
}

std::optional<FusionMatch> match_gradient(Node& gradient) {
  if (!is_over_last_axis(gradient)) return std::nullopt;
  FusionMatch match{.members = {&gradient}, .outputs = {}, .roles = {}};
  match.add_roles_of(gradient);
  Value* total = gradient.output();
  if (Node* add = sole_reader(total, "add"); add != nullptr && adds_equal_types(*add)) {
    match.members.push_back(add);
    match.add_role("incoming", other_operand(*add, total));
    total = add->output();
  }
  const std::vector<Node*> readers = readers_of(total);
  const auto dropout = std::find_if(readers.begin(), readers.end(), [&](const Node* reader) {
    return reader->operator_name() == "dropout" && reader->input(0) == total;
  });
  match.add_role("sum_gradient", total);
  if (dropout != readers.end()) {
    total = (*dropout)->output();
    match.members.push_back(*dropout);
    match.add_role("dropped", total);
    match.add_role("counter", (*dropout)->input(1));
    const std::vector<Node*> channel_sum = channel_sum_of(total);
    if (!channel_sum.empty()) {
      match.members.insert(match.members.end(), channel_sum.begin(), channel_sum.end());
      match.add_role("branch_bias_gradient", channel_sum.back()->output());
    }
  }
  match.outputs = visible_values(match.members);
  const bool is_read = std::ranges::find(match.outputs, total) != match.outputs.end();
  return is_read && match.members.size() > 1 ? std::optional(std::move(match)) : std::nullopt;
}

std::optional<DropoutBody> read_dropout(const Node& node) {
  if (!has_role(node, "dropped")) return std::nullopt;
  const Node& dropout = maker_of_role(node, "dropped");
  const double rate = dropout.attributes().real("rate");
  return DropoutBody{.counter = input_in_role(node, "counter"),
                     .stream = dropout.attributes().integer("stream"),
                     .rate = static_cast<float>(rate),
                     .factor = static_cast<float>(1 / (1 - rate))};
}

}  // namespace

bool is_over_last_axis(const Node& norm) {
  return norm.attributes().integer("axes") == 1 && norm.input(0)->type().rank() > 1;
}

FusionPattern residual_layer_norm_pattern() {
  return {.kind = "residual_layer_norm",
          .anchor = "layer_norm",
          .roles = {"x", "scale", "bias", "y", "mean", "inverse_deviation", "residual", "dropped", "counter",
                    "branch", "branch_bias"},
          .match = match_forward};
}

FusionPattern residual_layer_norm_gradient_pattern() {
  return {.kind = "residual_layer_norm_gradient",
          .anchor = "layer_norm_gradient",
          .roles = {"output_gradient", "x", "scale", "mean", "inverse_deviation", "input_gradient",
                    "scale_gradient", "bias_gradient", "incoming", "sum_gradient", "dropped", "counter",
                    "branch_bias_gradient"},
          .match = match_gradient};
}

ResidualLayerNormBody read_residual_layer_norm(const Node& node) {
  check_batch_norm_types(in_role(node, "x"), in_role(node, "scale"));
  const bool fused = node.body() != nullptr;
  refuse_unless(is_over_last_axis(maker_of_role(node, "y")), "a norm over more than the last axis");
  return {.branch = input_in_role(node, fused ? "branch" : "x"),
          .scale = input_in_role(node, "scale"),
          .shift = optional_input_in_role(node, "bias"),
          .residual = optional_input_in_role(node, "residual"),
          .bias = optional_input_in_role(node, "branch_bias"),
          .dropout = read_dropout(node),
          .y = output_in_role(node, "y").value(),
          .sum = fused ? output_in_role(node, "x") : std::nullopt,
          .mean = output_in_role(node, "mean"),
          .inverse_deviation = output_in_role(node, "inverse_deviation"),
          .epsilon = maker_of_role(node, "y").attributes().real("epsilon"),
          .centered = maker_of_role(node, "y").attributes().boolean("centered")};
}

ResidualLayerNormGradientBody read_residual_layer_norm_gradient(const Node& node) {
  check_batch_norm_types(in_role(node, "x"), in_role(node, "scale"));
  const Node& norm = maker_of_role(node, "input_gradient");
  refuse_unless(is_over_last_axis(norm), "a norm over more than the last axis");
  return {.dy = input_in_role(node, "output_gradient"),
          .sum = input_in_role(node, "x"),
          .scale = input_in_role(node, "scale"),
          .mean = input_in_role(node, "mean"),
          .inverse_deviation = input_in_role(node, "inverse_deviation"),
          .incoming = optional_input_in_role(node, "incoming"),
          .dropout = read_dropout(node),
          .dbranch = output_in_role(node, "dropped"),
          .dsum = output_in_role(node, node.body() == nullptr ? "input_gradient" : "sum_gradient"),
          .dscale = output_in_role(node, "scale_gradient"),
          .dshift = output_in_role(node, "bias_gradient"),
          .dbias = output_in_role(node, "branch_bias_gradient"),
          .centered = norm.attributes().boolean("centered")};
}

}  // namespace tessera::backend
