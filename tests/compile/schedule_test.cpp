// The order in which nodes run, beside the rule that it follows.
#include "compile/schedule.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera {
namespace {

// Sums and products of what there is, wide and narrow, with states that are updated.
std::unique_ptr<Graph> random_graph(uint64_t seed) {
  const Random random(seed);
  uint64_t drawn = 0;
  const auto below = [&](size_t bound) { return static_cast<size_t>(random.below(drawn++, bound)); };
  auto graph = std::make_unique<Graph>();
  std::vector<Value*> values{graph->add_input(InputRole::input, "x", {DataType::fp32, {8}})};
  std::vector<Value*> states;
  for (int i = 0; i < 4; ++i) {
    const SymbolicShape shape{i % 2 == 0 ? 8 : 1};
    states.push_back(graph->add_input(InputRole::state, "s" + std::to_string(i), {DataType::fp32, shape}));
    values.push_back(states.back());
  }
  for (int i = 0; i < 60; ++i) {
    Value* a = values[below(values.size())];
    Value* b = values[below(values.size())];
    values.push_back(below(3) == 0 ? ops::reduce_sum(a, {.axes = {0}, .keep_dimensions = true})
                                   : (below(2) == 0 ? ops::add(a, b) : ops::multiply(a, b)));
  }
  for (int i = 0; i < 3; ++i) graph->add_output("y" + std::to_string(i), values[5 + below(60)]);
  for (Value* state : states) {
    Value* next = values[5 + below(60)];
    if (next->type() == state->type()) graph->add_update(state, next);
  }
  return graph;
}

// The first node, in the graph's order, that frees more memory than it takes, else the first that can run.
class Rule {
 public:
  Rule(const Graph& graph, const Schedule& schedule) {
    for (const auto& node : graph.nodes()) waiting_.push_back(node.get());
    for (size_t i = 0; i < graph.updates().size(); ++i) {
      const auto& [state, next] = graph.updates()[i];
      if (!schedule.in_place_updates[i]) continue;
      in_place_.insert(next);
      for (const Use& use : state->uses()) {
        if (use.node != next->producer()) before_[next->producer()].insert(use.node);
      }
    }
    for (const auto& output : graph.outputs()) kept_.insert(output.value);
    for (const auto& update : graph.updates()) {
      if (!in_place_.contains(update.next)) kept_.insert(update.next);
    }
  }

  const Node* next() {
    const Node* first = nullptr;
    for (const Node* node : waiting_) {
      if (!is_ready(*node)) continue;
      if (first == nullptr) first = node;
      if (growth(*node) < 0) {
        first = node;
        break;
      }
    }
    std::erase(waiting_, first);
    return first;
  }

 private:
  bool waits(const Node* node) const {
    return std::find(waiting_.begin(), waiting_.end(), node) != waiting_.end();
  }
  bool is_ready(const Node& node) const {
    const auto& inputs = node.inputs();
    const auto before = before_.find(&node);
    return std::none_of(inputs.begin(), inputs.end(), [&](const Value* x) { return waits(x->producer()); }) &&
           (before == before_.end() || std::none_of(before->second.begin(), before->second.end(),
                                                    [&](const Node* other) { return waits(other); }));
  }
  int64_t growth(const Node& node) const {
    int64_t bytes = in_place_.contains(node.output()) ? 0 : node.output()->type().bytes();
    for (const Value* input : std::set<const Value*>(node.inputs().begin(), node.inputs().end())) {
      const bool is_last = std::none_of(input->uses().begin(), input->uses().end(),
                                        [&](const Use& use) { return use.node != &node && waits(use.node); });
      if (input->producer() != nullptr && is_last && !kept_.contains(input)) bytes -= input->type().bytes();
    }
    return bytes;
  }

  std::vector<const Node*> waiting_;  // in the graph's order
  std::map<const Node*, std::set<const Node*>> before_;
  std::set<const Value*> in_place_;
  std::set<const Value*> kept_;
};

TEST(Schedule, FollowsItsRuleInEveryGraph) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto graph = random_graph(seed);
    const Schedule made = schedule(*graph, false);
    ASSERT_EQ(made.every_run.size(), graph->nodes().size());
    Rule rule(*graph, made);
    for (const Node* node : made.every_run) ASSERT_EQ(node, rule.next()) << "seed " << seed;
  }
}

TEST(Schedule, RunsWhatFreesMemoryFirst) {
  const auto graph = parse_graph(R"(graph g(input %x: fp32[8]) {
  %a = exp(%x)
  %b = log(%x)
  %sum = reduce_sum(%a)
  output b = %b
  output sum = %sum
})");
  std::vector<std::string> names;
  for (const Node* node : schedule(*graph, false).every_run) names.push_back(node->name());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "sum", "b"}));
}

}  // namespace
}  // namespace tessera
