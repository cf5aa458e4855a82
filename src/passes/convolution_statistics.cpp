#include "passes/convolution_statistics.h"

#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/fuse.h"

namespace tessera::passes {
namespace {

// The sums of a value and of its squares over all axes but the last, made by one node with the convolution.
struct Statistics {
  Value* sum;
  Value* squares;
};

// What stands in front of a convolution and goes into its node: kind "normalized_convolution".
std::optional<NormalizedInput> normalized_input(const Node& convolution, const PassOptions& options) {
  if (!options.takes_normalized_input) return std::nullopt;
  std::optional<NormalizedInput> input = match_normalized_input(convolution.input(0));
  if (!input.has_value() ||
      !options.takes_normalized_input(convolution, input->norms.size(), input->residual != nullptr))
    return std::nullopt;
  return input;
}

Statistics add_statistics(Graph& graph, Node* convolution, const std::optional<NormalizedInput>& input,
                          DataType type) {
  Value* y = convolution->output();
  const ops::ReduceOptions over = over_all_but_channels(y);
  Value* wide = ops::cast(y, type);
  Value* sum = ops::reduce_sum(wide, over);
  Value* square = ops::square(wide);
  Value* squares = ops::reduce_sum(square, over);
  std::vector<Node*> members{convolution, sum->producer(), square->producer(), squares->producer()};
  if (wide != y) members.push_back(wide->producer());
  std::vector<Value*> outputs{y, sum, squares};
  if (input.has_value()) {
    members.insert(members.end(), input->nodes.begin(), input->nodes.end());
    Value* x = convolution->input(0);
    if (x->uses().size() > 1 || x->is_output_or_update()) outputs.push_back(x);
  }
  const std::string kind = input.has_value() ? "normalized_convolution" : "convolution_statistics";
  const Node* fused = fuse_nodes(graph, kind, members, outputs);
  return {fused->output(1), fused->output(2)};
}

// The mean of n numbers and their variance by the difference of two means: numbers of 16 bits, or made in
// TF32, whose mean is far from zero beside their deviation have lost the deviation already.
void rewrite(Graph& graph, Node* norm, const std::optional<NormalizedInput>& input) {
  Value* x = norm->input(0);
  const DataType type = norm->input(1)->data_type();
  const double share = 1 / static_cast<double>(rows_of_channels(x));
  const InsertionPoint here(graph, norm);
  graph.set_name_scope(norm->name());
  const Statistics statistics = add_statistics(graph, x->producer(), input, type);
  Value* y = norm->input(0);  // now an output of the fused node
  Value* mean = ops::multiply(statistics.sum, share);
  Value* variance = variance_of_means(ops::multiply(statistics.squares, share), mean);
  if (graph.is_used(norm->output())) {
    Value* result = normalize_channels(y, mean, variance, norm->input(1), norm->input(2),
                                       norm->attributes().real("epsilon"));
    graph.replace_all_uses(norm->output(), result);
  }
  graph.set_name_scope("");
  graph.replace_all_uses(norm->output(1), mean);
  graph.replace_all_uses(norm->output(2), variance);
  graph.erase(norm);
}

}  // namespace

bool use_convolution_statistics(Graph& graph, const PassOptions& options) {
  if (!options.takes_statistics) return false;
  bool changed = false;
  // In the graph's order: what one normalization leaves behind stands in front of the next convolution.
  for (Node* norm : nodes_of(graph, "batch_norm_training")) {
    const Value* x = norm->input(0);
    Node* convolution = producer_of(x, "convolution");
    // A bias of its own, which the normalization takes away again, no kernel adds in front of statistics.
    if (convolution == nullptr || convolution->inputs().size() != 2) continue;
    const std::optional<NormalizedInput> input = normalized_input(*convolution, options);
    if (!input.has_value() && !options.takes_statistics(*convolution)) continue;
    rewrite(graph, norm, input);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
