#include "compile/schedule.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/settled_values.h"

namespace tessera {
namespace {

class Scheduler {
 public:
  Scheduler(const Graph& graph, bool frozen) : graph_(graph) {
    result_.settled = settled_values(graph, frozen);
  }

  Schedule run() {
    split();
    count_dependencies();
    order_updates();
    choose_order();
    return std::move(result_);
  }

 private:
  using Index = size_t;

  void split() {
    for (const auto& node : graph_.nodes()) {
      if (result_.settled.contains(node->output())) {
        result_.once.push_back(node.get());
      } else {
        index_.emplace(node.get(), nodes_.size());
        nodes_.push_back(node.get());
      }
    }
  }

  void count_dependencies() {
    successors_.resize(nodes_.size());
    waiting_.assign(nodes_.size(), 0);
    for (Index i = 0; i < nodes_.size(); ++i) {
      for (const Value* input : nodes_[i]->inputs()) {
        if (const auto producer = index_.find(input->producer()); producer != index_.end())
          add_edge(producer->second, i);
      }
    }
  }

  void add_edge(Index from, Index to) {
    successors_[from].push_back(to);
    ++waiting_[to];
  }

  bool reaches(Index from, Index to) const {
    std::vector<bool> seen(nodes_.size(), false);
    std::vector<Index> stack{from};
    while (!stack.empty()) {
      const Index node = stack.back();
      stack.pop_back();
      if (node == to) return true;
      if (seen[node]) continue;
      seen[node] = true;
      stack.insert(stack.end(), successors_[node].begin(), successors_[node].end());
    }
    return false;
  }

  // Makes the producer of each update wait for the other readers of the old value, where that is no cycle.
  void order_updates() {
    std::unordered_set<const Value*> taken;  // a value can be written into one variable only
    for (const auto& [state, next] : graph_.updates()) {
      const auto producer = index_.find(next->producer());
      bool possible = producer != index_.end() && taken.insert(next).second;
      // The old value, copied elsewhere at the end of the run, must survive.
      for (const auto& other : graph_.updates()) possible = possible && other.next != state;
      for (const auto& output : graph_.outputs()) possible = possible && output.value != state;
      std::vector<Index> readers;
      for (const Use& use : state->uses()) {
        const auto reader = index_.find(use.node);
        if (reader == index_.end()) {
          possible =
              false;  // computed once from a value that changes: cannot be (frozen graphs have no updates)
        } else if (use.node != next->producer()) {
          readers.push_back(reader->second);
        }
      }
      // A reader may see the value through a reshape, which shares its memory.
      for (const Use& use : state->uses()) possible = possible && !use.node->schema().traits.view;
      for (Index reader : readers) possible = possible && !reaches(producer->second, reader);
      if (possible) {
        for (Index reader : readers) add_edge(reader, producer->second);
        written_in_place_.insert(next);
      }
      result_.in_place_updates.push_back(possible);
    }
  }

  // Bytes that running the node now would add to what is alive.
  int64_t growth(Index i) const {
    int64_t bytes = 0;
    for (const auto& output : nodes_[i]->outputs()) {
      if (!written_in_place_.contains(output.get())) bytes += output->type().bytes();
    }
    std::unordered_set<const Value*> seen;
    for (const Value* input : nodes_[i]->inputs()) {
      if (input->producer() == nullptr || !seen.insert(input).second || result_.settled.contains(input))
        continue;
      const auto readers = unread_.find(input);
      if (readers != unread_.end() && readers->second == uses_by(i, input)) bytes -= input->type().bytes();
    }
    return bytes;
  }

  size_t uses_by(Index i, const Value* value) const {
    return static_cast<size_t>(std::count(nodes_[i]->inputs().begin(), nodes_[i]->inputs().end(), value));
  }

  void choose_order() {
    for (const Node* node : nodes_) {
      for (const auto& output : node->outputs()) unread_[output.get()] = output->uses().size();
    }
    for (const auto& output : graph_.outputs()) ++unread_[output.value];  // never freed during the run
    for (const auto& update : graph_.updates()) {
      if (!written_in_place_.contains(update.next)) ++unread_[update.next];
    }
    std::map<Index, bool> ready;  // by the graph's own order
    for (Index i = 0; i < nodes_.size(); ++i) {
      if (waiting_[i] == 0) ready.emplace(i, true);
    }
    while (!ready.empty()) {
      Index next = ready.begin()->first;
      // Only nodes made ready recently can have become worth it, but ready sets are small enough to look at
      // all. In the graph's order, so that what was recomputed for its turn does not wait for others.
      for (const auto& [candidate, unused] : ready) {
        if (growth(candidate) < 0) {
          next = candidate;
          break;
        }
      }
      ready.erase(next);
      result_.every_run.push_back(nodes_[next]);
      for (const Value* input : nodes_[next]->inputs()) {
        if (const auto readers = unread_.find(input); readers != unread_.end()) --readers->second;
      }
      for (Index successor : successors_[next]) {
        if (--waiting_[successor] == 0) ready.emplace(successor, true);
      }
    }
    require(result_.every_run.size() == nodes_.size(), ErrorCode::internal, "graph '{}' has a cycle",
            graph_.name());
  }

  const Graph& graph_;
  Schedule result_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, Index> index_;
  std::vector<std::vector<Index>> successors_;
  std::vector<size_t> waiting_;
  std::unordered_set<const Value*> written_in_place_;
  std::unordered_map<const Value*, size_t> unread_;
};

}  // namespace

Schedule schedule(const Graph& graph, bool frozen) {
  return Scheduler(graph, frozen).run();
}

}  // namespace tessera
