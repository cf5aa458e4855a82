#include "compile/schedule.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/settled_values.h"

namespace tessera {

bool may_view(const Node& node) {
  return node.schema().traits.view || node.schema().result_offsets != nullptr;
}

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

  bool reaches(Index from, Index to) {
    ++visits_;
    std::vector<Index> stack{from};
    while (!stack.empty()) {
      const Index node = stack.back();
      stack.pop_back();
      if (node == to) return true;
      if (visited_[node] == visits_) continue;
      visited_[node] = visits_;
      stack.insert(stack.end(), successors_[node].begin(), successors_[node].end());
    }
    return false;
  }

  // Makes the producer of each update wait for the other readers of the old value, where that is no cycle.
  // Those of its parts, too, which may be read where they lie; where they cannot come first, parts are
  // copied.
  void order_updates() {
    visited_.assign(nodes_.size(), 0);
    std::unordered_set<const Value*> taken;  // a value can be written into one variable only
    for (const auto& [state, next] : graph_.updates()) {
      const auto producer = index_.find(next->producer());
      bool possible = producer != index_.end() && taken.insert(next).second;
      if (possible && !order_update(*state, producer->second, true)) {
        possible = order_update(*state, producer->second, false);
        if (possible) result_.overwritten_before_last_read.insert(state);
      }
      if (possible) written_in_place_.insert(next);
      result_.in_place_updates.push_back(possible);
    }
  }

  bool order_update(const Value& state, Index producer, bool with_parts) {
    std::vector<Index> readers;
    if (!find_readers(state, producer, with_parts, readers)) return false;
    for (Index reader : readers) {
      if (reaches(producer, reader)) return false;
    }
    for (Index reader : readers) add_edge(reader, producer);
    return true;
  }

  // Appends the readers of the value's memory but the producer; false where it is wanted after the run.
  bool find_readers(const Value& value, Index producer, bool with_parts, std::vector<Index>& readers) const {
    // The old value, copied elsewhere at the end of the run, must survive.
    if (value.is_output_or_update()) return false;
    for (const Use& use : value.uses()) {
      const auto reader = index_.find(use.node);
      // Computed once from a value that changes: cannot be (frozen graphs have no updates).
      if (reader == index_.end()) return false;
      if (reader->second != producer) readers.push_back(reader->second);
      if (!use.node->schema().traits.view && !(with_parts && may_view(*use.node))) continue;
      for (const auto& output : use.node->outputs()) {
        if (!find_readers(*output, producer, with_parts, readers)) return false;
      }
    }
    return true;
  }

  // A value between nodes that has not been read by all.
  struct Pending {
    size_t readers = 0;    // nodes that have still to run
    Index reader_sum = 0;  // of their indices: the last one's, when one is left
    bool is_kept = false;  // never freed during the run
  };

  // Bytes that running each node would add to what is alive: its results, less the inputs that it is the last
  // to read. They become fewer as the others run.
  void find_growth() {
    for (const auto& output : graph_.outputs()) pending_[output.value].is_kept = true;
    for (const auto& update : graph_.updates()) {
      if (!written_in_place_.contains(update.next)) pending_[update.next].is_kept = true;
    }
    growth_.assign(nodes_.size(), 0);
    for (Index i = 0; i < nodes_.size(); ++i) {
      for (const auto& output : nodes_[i]->outputs()) {
        if (!written_in_place_.contains(output.get())) growth_[i] += output->type().bytes();
      }
      for (const Value* input : read_by(i)) {
        Pending& pending = pending_[input];
        ++pending.readers;
        pending.reader_sum += i;
      }
    }
    for (const auto& [value, pending] : pending_) {
      if (pending.readers == 1 && !pending.is_kept) growth_[pending.reader_sum] -= value->type().bytes();
    }
  }

  // The values between nodes that the node reads, each once.
  std::vector<const Value*> read_by(Index i) const {
    std::vector<const Value*> result;
    for (const Value* input : nodes_[i]->inputs()) {
      if (input->producer() != nullptr && !result_.settled.contains(input)) result.push_back(input);
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  // In the graph's order, so that what was recomputed for its turn does not wait for others, but what frees
  // memory first.
  void choose_order() {
    find_growth();
    for (Index i = 0; i < nodes_.size(); ++i) {
      if (waiting_[i] == 0) make_ready(i);
    }
    std::vector<bool> done(nodes_.size(), false);
    while (!ready_.empty()) {
      Queue& queue = freeing_.empty() ? ready_ : freeing_;
      const Index next = queue.top();
      queue.pop();
      if (done[next]) continue;  // it was in both queues
      done[next] = true;
      result_.every_run.push_back(nodes_[next]);
      for (const Value* input : read_by(next)) take_reader(input, next);
      for (Index successor : successors_[next]) {
        if (--waiting_[successor] == 0) make_ready(successor);
      }
    }
    require(result_.every_run.size() == nodes_.size(), ErrorCode::internal, "graph '{}' has a cycle",
            graph_.name());
  }

  void make_ready(Index i) {
    ready_.push(i);
    if (growth_[i] < 0) freeing_.push(i);
  }

  void take_reader(const Value* value, Index reader) {
    Pending& pending = pending_.at(value);
    --pending.readers;
    pending.reader_sum -= reader;
    if (pending.readers != 1 || pending.is_kept) return;
    const Index last = pending.reader_sum;
    const bool took_memory = growth_[last] >= 0;
    growth_[last] -= value->type().bytes();
    if (took_memory && growth_[last] < 0 && waiting_[last] == 0) freeing_.push(last);
  }

  using Queue =
      std::priority_queue<Index, std::vector<Index>, std::greater<>>;  // the first in the graph first

  const Graph& graph_;
  Schedule result_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, Index> index_;
  std::vector<std::vector<Index>> successors_;
  std::vector<size_t> waiting_;
  std::unordered_set<const Value*> written_in_place_;
  std::unordered_map<const Value*, Pending> pending_;
  std::vector<int64_t> growth_;
  Queue ready_;
  Queue freeing_;                // those of the ready ones that free memory
  std::vector<size_t> visited_;  // the latest visit of each node
  size_t visits_ = 0;
};

}  // namespace

Schedule schedule(const Graph& graph, bool frozen) {
  return Scheduler(graph, frozen).run();
}

}  // namespace tessera
