#include "compile/views.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "tessera/graph/operator.h"

#include "compile/value_lives.h"

namespace tessera {

PlaceInMemory Views::place(const Value* value) const {
  PlaceInMemory place{value, 0};
  for (auto next = places_.find(value); next != places_.end(); next = places_.find(place.whole)) {
    place.whole = next->second.whole;
    place.offset += next->second.offset;
  }
  return place;
}

std::string Views::describe(const Node& node) const {
  const PlaceInMemory own = place(node.output());
  if (own.whole == node.output()) return "holds its operands";
  if (own.whole->type().bytes() == node.output()->type().bytes())
    return fmt::format("all of '{}'", own.whole->name());
  return fmt::format("part of '{}' at byte {}", own.whole->name(), own.offset);
}

// Finds views of a graph whose nodes in `copied` are none.
class ViewFinder {
 public:
  using Nodes = std::unordered_set<const Node*>;

  ViewFinder(const Graph& graph, const Schedule& schedule, const StorageOptions& options, const Nodes& copied)
      : schedule_(schedule), options_(options), copied_(copied) {
    for (size_t i = 0; i < graph.updates().size(); ++i) {
      if (!schedule.in_place_updates[i]) continue;
      const auto& [state, next] = graph.updates()[i];
      written_in_place_.emplace(next);
      producer_of_next_.emplace(state, next->producer());
    }
  }

  Views run() {
    for (const auto* nodes : {&schedule_.once, &schedule_.every_run}) {
      for (const Node* node : *nodes) add_results(*node);
    }
    for (const Node* node : joins()) add_operands(*node);
    compress();
    return std::move(views_);
  }

 private:
  // Of values without elements it does not matter where they lie.
  bool is_aligned(const std::vector<int64_t>& offsets, const auto& values) const {
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] % options_.alignment != 0 && values[i]->type().bytes() > 0) return false;
    }
    return !offsets.empty();
  }

  void add_results(const Node& node) {
    if (node.schema().traits.view) {
      put(node.output(), {node.input(0), 0});
      views_.aliases_.insert(&node);
    } else if (may_be_parts(node)) {
      const std::vector<int64_t> offsets = node.schema().result_offsets(node);
      if (!is_aligned(offsets, node.outputs())) return;
      for (const auto& output : node.outputs()) put(output.get(), {node.input(0), offsets[output->index()]});
      views_.aliases_.insert(&node);
    }
  }

  bool may_be_parts(const Node& node) const {
    if (!options_.reuse || node.schema().result_offsets == nullptr || copied_.contains(&node)) return false;
    const Value* whole = views_.whole(node.input(0));
    if (schedule_.overwritten_before_last_read.contains(whole)) return false;
    // What writes over a variable must not read parts of it.
    const auto writer = producer_of_next_.find(whole);
    return writer == producer_of_next_.end() || !reads_any(*writer->second, node);
  }

  // Whether `reader` reads a result of the node, or views of it.
  static bool reads_any(const Node& reader, const Node& node) {
    const auto is_result = [&](const Value* value) {
      while (value->producer() != nullptr && value->producer() != &node && may_view(*value->producer()))
        value = value->producer()->input(0);
      return value->producer() == &node;
    };
    return std::any_of(reader.inputs().begin(), reader.inputs().end(), is_result);
  }

  // The largest first, of equal ones the last: a list that grew holds the shorter ones, and what joins what
  // was joined holds that.
  std::vector<const Node*> joins() const {
    std::vector<const Node*> nodes;
    for (auto node = schedule_.every_run.rbegin(); node != schedule_.every_run.rend(); ++node) {
      const bool joins = options_.reuse && (*node)->schema().operand_offsets != nullptr;
      if (joins && !copied_.contains(*node) && !written_in_place_.contains((*node)->output()))
        nodes.push_back(*node);
    }
    std::stable_sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) {
      return a->output()->type().bytes() > b->output()->type().bytes();
    });
    return nodes;
  }

  void add_operands(const Node& node) {
    const std::vector<int64_t> offsets = node.schema().operand_offsets(node);
    if (!is_aligned(offsets, node.inputs())) return;
    if (!make_in_place(node, offsets)) find_in_place(node, offsets);
  }

  bool make_in_place(const Node& node, const std::vector<int64_t>& offsets) {
    std::vector<const Value*> parts;
    for (const Value* input : node.inputs()) {
      parts.push_back(same_memory(input));
      const bool is_twice = std::find(parts.begin(), parts.end() - 1, parts.back()) != parts.end() - 1;
      if (is_twice || !may_be_placed(*parts.back())) return false;
    }
    for (size_t i = 0; i < parts.size(); ++i) put(parts[i], {node.output(), offsets[i]});
    views_.aliases_.insert(&node);
    return true;
  }

  // What a chain of reshapes begins with.
  static const Value* same_memory(const Value* value) {
    while (value->producer() != nullptr && value->producer()->schema().traits.view)
      value = value->producer()->input(0);
    return value;
  }

  // Whether a node makes it in every run, and may do so anywhere.
  bool may_be_placed(const Value& value) const {
    return value.producer() != nullptr && !schedule_.settled.contains(&value) &&
           !views_.places_.contains(&value) && !written_in_place_.contains(&value);
  }

  // Where the operands lie one after the other already: in a larger concatenation, or since a value was
  // split.
  void find_in_place(const Node& node, const std::vector<int64_t>& offsets) {
    if (views_.places_.contains(node.output())) return;
    std::optional<PlaceInMemory> begin;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.input(i)->type().bytes() == 0) continue;
      PlaceInMemory place = views_.place(node.input(i));
      place.offset -= offsets[i];
      if (!begin.has_value()) begin = place;
      if (begin->whole != place.whole || begin->offset != place.offset) return;
    }
    if (!begin.has_value() || begin->whole->may_be_updated() || written_in_place_.contains(begin->whole))
      return;
    put(node.output(), *begin);
    views_.aliases_.insert(&node);
  }

  void put(const Value* value, const PlaceInMemory& place) { views_.places_.emplace(value, place); }

  // Each place in what lies in no other's memory.
  void compress() {
    for (auto& [value, place] : views_.places_) {
      const PlaceInMemory outer = views_.place(place.whole);
      place = {outer.whole, place.offset + outer.offset};
    }
  }

  const Schedule& schedule_;
  const StorageOptions& options_;
  const Nodes& copied_;
  std::unordered_set<const Value*> written_in_place_;
  std::unordered_map<const Value*, const Node*> producer_of_next_;  // by variable that is written in place
  Views views_;
};

namespace {

// The nodes without work that have it where they are copies.
std::vector<const Node*> nodes_with_parts(const Schedule& schedule, const Views& views) {
  std::vector<const Node*> result;
  for (const Node* node : schedule.every_run) {
    if (views.is_alias(*node) && !node->schema().traits.view) result.push_back(node);
  }
  return result;
}

Views whole_views(const Graph& graph, const Schedule& schedule) {
  const StorageOptions options{.reuse = false};
  return ViewFinder(graph, schedule, options, {}).run();
}

}  // namespace

Views find_views(const Graph& graph, const Schedule& schedule, const StorageOptions& options) {
  constexpr int kMostAttempts = 16;
  ViewFinder::Nodes copied;
  std::optional<ValueLives> with_copies;
  for (int attempt = 0; options.reuse && attempt < kMostAttempts; ++attempt) {
    Views views = ViewFinder(graph, schedule, options, copied).run();
    const std::vector<const Node*> nodes = nodes_with_parts(schedule, views);
    if (nodes.empty()) return views;
    if (!with_copies.has_value())
      with_copies.emplace(graph, schedule, whole_views(graph, schedule), options.alignment);
    const ValueLives lives(graph, schedule, views, options.alignment);
    if (lives.peak_bytes() <= with_copies->peak_bytes() + options.worth_a_copy) return views;
    const auto wasteful = lives.larger_at_peak(*with_copies, views);
    for (const Node* node : nodes) {
      if (wasteful.contains(views.whole(node->output()))) copied.insert(node);
    }
  }
  return whole_views(graph, schedule);
}

}  // namespace tessera
