#include "train/over_ranks.h"

#include <algorithm>
#include <map>

#include "tessera/distribute/exchange.h"
#include "tessera/graph/operator.h"

namespace tessera::train {

std::vector<Value*> OverRanks::exchanged(const std::string& collective, std::vector<Value*> values,
                                         Attributes attributes) const {
  if (ranks_.count == 1 || values.empty()) return values;
  attributes.set("ranks", ranks_.count);
  const Node* node = ops::apply(collective, values, attributes);
  for (size_t i = 0; i < values.size(); ++i) values[i] = node->output(i);
  return values;
}

std::vector<Value*> OverRanks::reduced(std::vector<Value*> values, const std::string& reduction) const {
  return exchanged("all_reduce", std::move(values), {{"reduction", reduction}});
}

std::vector<Value*> OverRanks::scattered(std::vector<Value*> values) const {
  return exchanged("reduce_scatter", std::move(values));
}

std::vector<Value*> OverRanks::gathered(std::vector<Value*> rows) const {
  return exchanged("all_gather", std::move(rows));
}

void Exchange::add_measures(std::vector<nn::Measure>& measures) {
  for (nn::Measure& measure : measures) {
    add(measure.sum);
    add(measure.weight);
  }
}

void Exchange::add_states(Graph& graph, size_t count, const std::set<const Value*>& of_rows) {
  graph_ = &graph;
  if (ranks_.count() == 1) return;
  for (size_t i = 0; i < count; ++i) {
    const auto& [state, next] = graph.updates()[i];
    if (of_rows.contains(state)) continue;
    if (!kFloatingTypes.contains(next->data_type())) continue;  // counters, which all ranks have alike
    means_.push_back({i, ops::multiply(next, 1 / static_cast<double>(ranks_.count()))});
  }
}

void Exchange::make() {
  for (Mean& mean : means_) add(mean.share);
  std::map<Value*, size_t> place_of;  // a value that is asked for twice travels once
  std::vector<Value*> values;
  for (Value** place : places_) {
    if (place_of.try_emplace(*place, values.size()).second) values.push_back(*place);
  }
  const std::vector<Value*> sums = ranks_.reduced(values);
  for (Value** place : places_) *place = sums[place_of.at(*place)];
  for (const Mean& mean : means_) graph_->set_update(mean.update, mean.share);
}

Agreement agreed(Communicator* communicator, const Agreement& own) {
  if (communicator == nullptr) return own;
  const std::vector<bool> all = distribute::any_rank(*communicator, {own.stop, own.save});
  return {.stop = all[0], .save = all[1]};
}

bool communicates(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return node->schema().operator_class == OperatorClass::communication;
  });
}

}  // namespace tessera::train
