#include "train/local_average.h"

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/train/step.h"

namespace tessera::train {

void average_updates(Graph& graph, const OverRanks& ranks, StepGuard& guard,
                     const std::set<const Value*>& of_rows) {
  Value* one = ops::constant(graph, Tensor::scalar(DataType::fp32, 1));
  Value* zero = ops::constant(graph, Tensor::scalar(DataType::fp32, 0));
  std::vector<size_t> averaged;
  std::vector<Value*> means;
  std::vector<size_t> lowered;
  std::vector<Value*> least;
  for (size_t i = 0; i < graph.updates().size(); ++i) {
    const auto& [state, next] = graph.updates()[i];
    if (state == guard.halted() || !kFloatingTypes.contains(next->data_type())) continue;
    if (is_accumulated(state->name()) || of_rows.contains(state)) continue;
    const bool falls = guard.is_of_loss_scale(state);
    (falls ? lowered : averaged).push_back(i);
    (falls ? least : means).push_back(next);
  }
  means = ranks.reduced(std::move(means), "mean");
  least.push_back(ops::select(guard.goes_on(), one, zero));
  least = ranks.reduced(std::move(least), "minimum");
  for (size_t i = 0; i < averaged.size(); ++i) graph.set_update(averaged[i], means[i]);
  for (size_t i = 0; i < lowered.size(); ++i) graph.set_update(lowered[i], least[i]);
  Value* all_go_on = ops::equal(least.back(), one);
  for (size_t i = 0; i < graph.updates().size(); ++i) {
    const auto& [state, next] = graph.updates()[i];
    Value* otherwise = state == guard.halted() ? one : state;
    graph.set_update(i, ops::select(all_go_on, next, otherwise));
  }
}

}  // namespace tessera::train
