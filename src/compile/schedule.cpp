#include "compile/schedule.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/readiness.h"
#include "tessera/passes/settled_values.h"

namespace tessera {

bool may_view(const Node& node) {
  return node.schema().traits.view || node.schema().result_offsets != nullptr;
}

namespace {

class Scheduler {
 public:
  using TakesLane = std::function<bool(const Node& node)>;

  Scheduler(const Graph& graph, bool frozen, const TakesLane& takes_lane)
      : graph_(graph), takes_lane_(takes_lane) {
    result_.settled = settled_values(graph, frozen);
  }

  Schedule run() {
    split();
    count_dependencies();
    order_lane();
    order_updates();
    choose_order();
    return std::move(result_);
  }

 private:
  using Index = size_t;
  using Queue =
      std::priority_queue<Index, std::vector<Index>, std::greater<>>;  // the first in the graph first

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

  // All ranks must begin their collectives in the same order.
  void order_lane() {
    level_.assign(nodes_.size(), kNoLane);
    feeds_.assign(nodes_.size(), nullptr);
    if (!takes_lane_) return;
    std::vector<Index> lane;
    for (Index i = 0; i < nodes_.size(); ++i) {
      if (!takes_lane_(*nodes_[i])) continue;
      result_.on_lane.insert(nodes_[i]);
      lane.push_back(i);
    }
    if (lane.empty()) return;
    const Readiness readiness(graph_);
    std::stable_sort(lane.begin(), lane.end(), [&](Index a, Index b) {
      return readiness.of_inputs(*nodes_[a]) < readiness.of_inputs(*nodes_[b]);
    });
    for (size_t place = 1; place < lane.size(); ++place) add_edge(lane[place - 1], lane[place]);
    for (size_t place = 0; place < lane.size(); ++place) place_on_lane_.emplace(lane[place], place);
    for (Index i = nodes_.size(); i-- > 0;) feeds_[i] = fed_by(*nodes_[i]);
  }

  bool is_on_lane(Index i) const { return place_on_lane_.contains(i); }

  // The collective to which light work alone leads from the node, and for which it is all: null where there
  // is none. What takes long has its turn, and so has what is made for it.
  const Node* fed_by(const Node& node) const {
    if (result_.on_lane.contains(&node) || takes_long(node)) return nullptr;
    const Node* collective = nullptr;
    for (const auto& output : node.outputs()) {
      if (output->is_output_or_update() || output->uses().empty()) return nullptr;
      for (const Use& use : output->uses()) {
        const Node* next = result_.on_lane.contains(use.node) ? use.node : nullptr;
        const auto reader = index_.find(use.node);
        if (next == nullptr && reader != index_.end()) next = feeds_[reader->second];
        if (next == nullptr || (collective != nullptr && next != collective)) return nullptr;
        collective = next;
      }
    }
    return collective;
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
  // memory first, and before that light work that the lane waits for. What must wait for the lane comes when
  // nothing else is left.
  void choose_order() {
    find_growth();
    for (Index i = 0; i < nodes_.size(); ++i) {
      if (waiting_[i] == 0) make_ready(i);
    }
    std::vector<bool> done(nodes_.size(), false);
    while (Queue* queue = next_queue()) {
      const Index next = queue->top();
      queue->pop();
      if (done[next]) continue;  // it was in two queues
      done[next] = true;
      result_.every_run.push_back(nodes_[next]);
      for (const Value* input : read_by(next)) take_reader(input, next);
      const auto place = place_on_lane_.find(next);
      const int64_t level =
          place == place_on_lane_.end() ? level_[next] : static_cast<int64_t>(place->second);
      for (Index successor : successors_[next]) {
        level_[successor] = std::max(level_[successor], level);
        if (--waiting_[successor] == 0) make_ready(successor);
      }
    }
    require(result_.every_run.size() == nodes_.size(), ErrorCode::internal, "graph '{}' has a cycle",
            graph_.name());
  }

  // Null where none is ready.
  Queue* next_queue() {
    for (Queue* queue : {&lane_ready_, &feeding_, &freeing_, &ready_}) {
      if (!queue->empty()) return queue;
    }
    if (after_lane_.empty()) return nullptr;
    joined_ = after_lane_.begin()->first;
    for (const Index i : after_lane_.begin()->second) make_ready(i);
    after_lane_.erase(after_lane_.begin());
    return next_queue();
  }

  void make_ready(Index i) {
    if (is_on_lane(i)) return lane_ready_.push(i);
    if (level_[i] > joined_) return after_lane_[level_[i]].push_back(i);
    if (feeds_[i] != nullptr) return feeding_.push(i);
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
    const bool is_ready = waiting_[last] == 0 && level_[last] <= joined_ && !is_on_lane(last);
    if (took_memory && growth_[last] < 0 && is_ready) freeing_.push(last);
  }

  static constexpr int64_t kNoLane = -1;

  const Graph& graph_;
  const TakesLane& takes_lane_;
  Schedule result_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, Index> index_;
  std::vector<std::vector<Index>> successors_;
  std::vector<size_t> waiting_;
  std::unordered_set<const Value*> written_in_place_;
  std::unordered_map<const Value*, Pending> pending_;
  std::vector<int64_t> growth_;
  Queue ready_;
  Queue freeing_;     // those of the ready ones that free memory
  Queue feeding_;     // ready ones that only the lane waits for
  Queue lane_ready_;  // those of the lane
  std::unordered_map<Index, size_t> place_on_lane_;
  std::vector<const Node*> feeds_;                    // see fed_by()
  std::vector<int64_t> level_;                        // the last place on the lane that each waits for
  int64_t joined_ = kNoLane;                          // the place on the lane that was waited for so far
  std::map<int64_t, std::vector<Index>> after_lane_;  // ready ones that would wait for more, by their level
  std::vector<size_t> visited_;                       // the latest visit of each node
  size_t visits_ = 0;
};

}  // namespace

Schedule schedule(const Graph& graph, bool frozen, const std::function<bool(const Node& node)>& takes_lane) {
  return Scheduler(graph, frozen, takes_lane).run();
}

}  // namespace tessera
