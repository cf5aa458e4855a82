#include "train/over_ranks.h"

#include <algorithm>
#include <map>

#include "tessera/graph/operator.h"

namespace tessera::train {

std::vector<Value*> OverRanks::exchanged(const std::string& collective, std::vector<Value*> values,
                                         Attributes attributes) const {
  if (ranks_.count == 1) return values;
  attributes.set("ranks", ranks_.count);
  std::map<DataType, std::vector<size_t>> places;
  for (size_t i = 0; i < values.size(); ++i) places[values[i]->data_type()].push_back(i);
  for (const auto& [type, of_type] : places) {
    std::vector<Value*> own;
    for (const size_t i : of_type) own.push_back(values[i]);
    const Node* node = ops::apply(collective, own, attributes);
    for (size_t i = 0; i < of_type.size(); ++i) values[of_type[i]] = node->output(i);
  }
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

void OverRanks::add_up(std::vector<nn::Measure>& measures) const {
  std::vector<Value*> sums;
  for (const nn::Measure& measure : measures) {
    sums.push_back(measure.sum);
    sums.push_back(measure.weight);
  }
  sums = reduced(std::move(sums));
  for (size_t i = 0; i < measures.size(); ++i) {
    measures[i].sum = sums[2 * i];
    measures[i].weight = sums[2 * i + 1];
  }
}

void OverRanks::average_states(Graph& graph, size_t count) const {
  std::vector<size_t> places;
  std::vector<Value*> own;
  for (size_t i = 0; i < count; ++i) {
    Value* next = graph.updates()[i].next;
    if (!kFloatingTypes.contains(next->data_type())) continue;  // counters, which all ranks have alike
    places.push_back(i);
    own.push_back(next);
  }
  const std::vector<Value*> means = reduced(std::move(own), "mean");
  for (size_t i = 0; i < places.size(); ++i) graph.set_update(places[i], means[i]);
}

bool communicates(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return node->schema().operator_class == OperatorClass::communication;
  });
}

}  // namespace tessera::train
