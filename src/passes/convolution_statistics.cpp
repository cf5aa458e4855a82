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

Statistics add_statistics(Graph& graph, Node* convolution, DataType type) {
  Value* y = convolution->output();
  const ops::ReduceOptions over = over_all_but_channels(y);
  Value* wide = ops::cast(y, type);
  Value* sum = ops::reduce_sum(wide, over);
  Value* square = ops::square(wide);
  Value* squares = ops::reduce_sum(square, over);
  const Node* fused =
      fuse_nodes(graph, "convolution_statistics",
                 {convolution, wide->producer(), sum->producer(), square->producer(), squares->producer()},
                 {y, sum, squares});
  return {fused->output(1), fused->output(2)};
}

// The mean of n numbers and their variance by the difference of two means: 16-bit numbers whose mean is far
// from zero beside their deviation have lost the deviation already.
void rewrite(Graph& graph, Node* norm) {
  Value* x = norm->input(0);
  const DataType type = norm->input(1)->data_type();
  const int64_t rows = x->type().element_count() / x->shape().back().value();
  const double share = 1.0 / static_cast<double>(rows);
  const InsertionPoint here(graph, norm);
  graph.set_name_scope(norm->name());
  const Statistics statistics = add_statistics(graph, x->producer(), type);
  Value* y = norm->input(0);  // now an output of the fused node
  Value* mean = ops::multiply(statistics.sum, share);
  Value* variance = variance_of_means(ops::multiply(statistics.squares, share), mean);
  if (graph.is_used(norm->output())) {
    Value* result = normalise_channels(y, mean, variance, norm->input(1), norm->input(2),
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
  if (options.convolution_statistics_bytes == 0) return false;
  std::vector<Node*> norms;
  for (Node* norm : nodes_of(graph, "batch_norm_training")) {
    const Value* x = norm->input(0);
    if (producer_of(x, "convolution") != nullptr && size_of(x->data_type()) == 2 &&
        x->type().bytes() >= options.convolution_statistics_bytes)
      norms.push_back(norm);
  }
  for (Node* norm : norms) rewrite(graph, norm);
  return !norms.empty();
}

}  // namespace tessera::passes
