#include "tessera/device/common/convolution_patterns.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

// A bias of its own, which the normalization takes away again, no kernel adds before statistics.
Node* convolution_before(const Node& norm) {
  Node* convolution = producer_of(norm.input(0), "convolution");
  return convolution != nullptr && convolution->inputs().size() == 2 ? convolution : nullptr;
}

FusionMatch match_of(Node& convolution) {
  FusionMatch match{.members = {&convolution}, .outputs = {}, .roles = {}};
  match.add_roles_of(convolution);
  return match;
}

// The sums of the result and of its squares over all axes but the last.
void add_sums(FusionMatch& match) {
  const Node& norm = *match.anchor;
  Value* y = match.value("y");
  Value* x = match.value("x");
  const bool keeps = match.members.size() > 1 && (x->uses().size() > 1 || x->is_output_or_update());
  Graph& graph = norm.graph();
  const InsertionPoint here(graph, match.anchor);
  graph.set_name_scope(norm.name());
  const ops::ReduceOptions over = over_all_but_channels(y);
  Value* wide = ops::cast(y, norm.input(1)->data_type());
  Value* sum = ops::reduce_sum(wide, over);
  Value* square = ops::square(wide);
  Value* squares = ops::reduce_sum(square, over);
  graph.set_name_scope("");
  match.members.insert(match.members.end(), {sum->producer(), square->producer(), squares->producer()});
  if (wide != y) match.members.push_back(wide->producer());
  match.outputs = {y, sum, squares};
  if (keeps) match.outputs.push_back(x);
}

// The mean of n numbers and their variance by the difference of two means: numbers of 16 bits, or made in
// TF32, whose mean is far from zero beside their deviation have lost the deviation already.
void normalize_by_sums(const FusionMatch& match, Node& fused) {
  Node* norm = match.anchor;
  Graph& graph = fused.graph();
  const InsertionPoint here(graph, norm);
  graph.set_name_scope(norm->name());
  const double share = 1 / static_cast<double>(rows_of_channels(norm->input(0)));
  Value* mean = ops::multiply(fused.output(1), share);
  Value* variance = variance_of_means(ops::multiply(fused.output(2), share), mean);
  if (graph.is_used(norm->output())) {
    Value* result = normalize_channels(norm->input(0), mean, variance, norm->input(1), norm->input(2),
                                       norm->attributes().real("epsilon"));
    graph.replace_all_uses(norm->output(), result);
  }
  graph.set_name_scope("");
  graph.replace_all_uses(norm->output(1), mean);
  graph.replace_all_uses(norm->output(2), variance);
  graph.erase(norm);
}

}  // namespace

FusionPattern convolution_statistics_pattern(std::function<bool(const Node& convolution)> takes) {
  FusionPattern pattern{
      .kind = "convolution_statistics", .anchor = "batch_norm_training", .roles = {"x", "weight", "y"}};
  pattern.match = [](Node& norm) -> std::optional<FusionMatch> {
    Node* convolution = convolution_before(norm);
    return convolution == nullptr ? std::nullopt : std::optional(match_of(*convolution));
  };
  pattern.worth = [takes = std::move(takes)](const FusionMatch& match) { return takes(match.maker("y")); };
  pattern.complete = add_sums;
  pattern.finish = normalize_by_sums;
  return pattern;
}

FusionPattern normalized_convolution_pattern(TakesNormalizedInput takes) {
  FusionPattern pattern{.kind = "normalized_convolution",
                        .anchor = "batch_norm_training",
                        .roles = {"x", "weight", "y", "normalized", "mean", "factor", "bias", "residual"}};
  pattern.match = [](Node& norm) -> std::optional<FusionMatch> {
    Node* convolution = convolution_before(norm);
    std::optional<NormalizedInput> input =
        convolution == nullptr ? std::nullopt : match_normalized_input(convolution->input(0));
    if (!input.has_value()) return std::nullopt;
    FusionMatch match = match_of(*convolution);
    match.members.insert(match.members.end(), input->nodes.begin(), input->nodes.end());
    for (const NormalizedChannels& channels : input->norms) {
      match.add_role("normalized", channels.x);
      match.add_role("mean", channels.mean);
      match.add_role("factor", channels.factor);
      match.add_role("bias", channels.bias);
    }
    if (input->residual != nullptr) match.add_role("residual", input->residual);
    return match;
  };
  pattern.worth = [takes = std::move(takes)](const FusionMatch& match) {
    return takes(match.maker("y"), match.count("normalized"), match.value("residual") != nullptr);
  };
  pattern.complete = add_sums;
  pattern.finish = normalize_by_sums;
  return pattern;
}

const Node& read_convolution_statistics(const Node& node) {
  refuse_unless(!has_role(node, "bias"), "a bias");
  return maker_of_role(node, "y");
}

NormalizedConvolutionBody read_normalized_convolution(const Node& node) {
  return {.convolution = &maker_of_role(node, "y"),
          .x = inputs_in_role(node, "normalized"),
          .mean = inputs_in_role(node, "mean"),
          .factor = inputs_in_role(node, "factor"),
          .bias = inputs_in_role(node, "bias"),
          .residual = optional_input_in_role(node, "residual"),
          .weight = input_in_role(node, "weight"),
          .keeps = output_in_role(node, "x").has_value()};
}

}  // namespace tessera::backend
