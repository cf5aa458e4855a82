// Of a training normalization whose result nobody reads, because something else makes it, the statistics are
// left.
#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/fuse.h"

#include "passes/passes.h"

namespace tessera::passes {

bool reduce_to_statistics(Graph& graph, const PassContext&) {
  bool changed = false;
  for (Node* norm : nodes_of(graph, "batch_norm_training")) {
    if (graph.is_used(norm->output())) continue;
    const InsertionPoint here(graph, norm);
    graph.set_name_scope(norm->name());
    const BatchStatistics statistics = batch_statistics(norm->input(0), norm->input(1)->data_type());
    graph.set_name_scope("");
    graph.replace_all_uses(norm->output(1), statistics.mean);
    graph.replace_all_uses(norm->output(2), statistics.variance);
    graph.erase(norm);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
