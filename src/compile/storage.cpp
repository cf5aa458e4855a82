#include "compile/storage.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera {

void check_total_bytes(const Graph& graph) {
  constexpr int64_t kMaximumBytes = int64_t{1} << 56;
  int64_t total = 0;
  const auto add = [&](const Value& value) {
    if (value.type().is_static()) total += value.type().bytes();
    require(total <= kMaximumBytes, ErrorCode::out_of_memory,
            "the values of graph '{}' together take more than {} PiB", graph.name(), kMaximumBytes >> 50);
  };
  for (const auto& input : graph.inputs()) add(*input);
  for (const auto& node : graph.nodes()) {
    for (const auto& output : node->outputs()) add(*output);
  }
}

namespace {

class StoragePlanner {
 public:
  StoragePlanner(const Graph& graph, const Schedule& schedule, const Views& views, const LanePlan& lanes,
                 const std::vector<Kernel*>& kernels, const StorageOptions& options)
      : graph_(graph),
        schedule_(schedule),
        views_(views),
        lanes_(lanes),
        kernels_(kernels),
        options_(options) {}

  StoragePlan run() {
    place_inputs();
    place_once();
    place_updates();
    count_readers();
    for (size_t step = 0; step < schedule_.every_run.size(); ++step) place_step(step);
    for (const auto& output : graph_.outputs()) keep_to_the_end(output.value);
    for (size_t index : plan_.copied_updates) keep_to_the_end(graph_.updates()[index].next);
    count_what_runs_read();
    if (!options_.reuse) {
      for (MemoryBlock& block : plan_.memory.blocks) {
        block.first = 0;
        block.last = last_step();
      }
    }
    plan_.memory.alignment = options_.alignment;
    assign_offsets(plan_.memory);
    verify(plan_.memory);
    return std::move(plan_);
  }

 private:
  int64_t last_step() const { return static_cast<int64_t>(schedule_.every_run.size()); }

  void place_inputs() {
    for (const auto& input : graph_.inputs()) {
      if (input->role() == InputRole::input) {
        plan_.placements[input.get()] = {StorageKind::input, input->index(), ""};
      } else {
        plan_.placements[input.get()] = {StorageKind::variable, 0, input->name()};
      }
    }
  }

  void place_once() {
    for (const Node* node : schedule_.once) {
      for (const auto& output : node->outputs()) {
        if (views_.is_alias(*node)) {
          place_in_whole(output.get());
          continue;
        }
        plan_.placements[output.get()] = {StorageKind::persistent, plan_.persistent.size(), ""};
        plan_.persistent.push_back(output.get());
      }
    }
  }

  void place_updates() {
    std::unordered_map<const Node*, const Kernel*> kernel_of;
    for (size_t step = 0; step < schedule_.every_run.size(); ++step)
      kernel_of[schedule_.every_run[step]] = kernels_[step];
    for (size_t i = 0; i < graph_.updates().size(); ++i) {
      const auto& [state, next] = graph_.updates()[i];
      if (state == next) continue;
      Node* producer = next->producer();
      bool in_place = schedule_.in_place_updates[i] && !views_.is_alias(*producer);
      if (in_place) {  // a producer that reads the old value must be able to write over it
        const Kernel* kernel = kernel_of.at(producer);
        for (size_t input = 0; input < producer->inputs().size(); ++input) {
          if (views_.whole(producer->input(input)) == state)
            in_place = in_place && kernel != nullptr && kernel->may_overwrite(next->index(), input);
        }
      }
      if (in_place) {
        plan_.placements[next] = {StorageKind::variable, 0, state->name()};
      } else {
        plan_.copied_updates.push_back(i);
      }
    }
  }

  void count_what_runs_read() {
    std::set<std::string> used;
    std::set<size_t> derived;
    const auto use = [&](const Value* value) {
      const Placement& placement = plan_.placements.at(value);
      if (placement.kind == StorageKind::variable) used.insert(placement.variable);
      if (placement.kind == StorageKind::persistent) derived.insert(placement.index);
    };
    for (const Node* node : schedule_.every_run) {
      for (const Value* input : node->inputs()) use(input);
    }
    for (const auto& output : graph_.outputs()) use(output.value);
    for (const auto& [state, next] : graph_.updates()) {
      use(state);
      use(next);
    }
    for (const auto& input : graph_.inputs()) {
      if (input->role() == InputRole::input) continue;
      const bool runs = used.contains(input->name());
      (runs ? plan_.memory.variable_bytes : plan_.memory.settled_variable_bytes) += input->type().bytes();
      if (!runs) plan_.settled_variables.insert(input->name());
    }
    for (size_t index = 0; index < plan_.persistent.size(); ++index) {
      const Value& value = *plan_.persistent[index];
      if (!derived.contains(index)) {
        plan_.passing.insert(index);
        continue;
      }
      plan_.memory.persistent_bytes += value.type().bytes();
      plan_.memory.derived.push_back({value.name(), to_string(value.type()), value.type().bytes()});
    }
  }

  // Where the value lies in another's memory, which has its place.
  void place_in_whole(const Value* value) {
    const PlaceInMemory place = views_.place(value);
    Placement placement = plan_.placements.at(place.whole);
    placement.offset = place.offset;
    plan_.placements[value] = placement;
  }

  // Readers are counted by memory, not by value: a reshape shares its input's.
  void count_readers() {
    for (const Node* node : schedule_.every_run) {
      if (views_.is_alias(*node)) continue;
      for (const Value* input : node->inputs()) ++readers_[views_.whole(input)];
    }
    for (const auto& output : graph_.outputs()) ++readers_[views_.whole(output.value)];
    for (size_t index : plan_.copied_updates) ++readers_[views_.whole(graph_.updates()[index].next)];
  }

  void place_step(size_t step) {
    const Node& node = *schedule_.every_run[step];
    plan_.workspace_blocks.push_back(StoragePlan::kNone);
    if (views_.is_alias(node)) {
      for (const auto& output : node.outputs()) place_in_whole(output.get());
      return;
    }
    const auto now = static_cast<int64_t>(step);
    for (const Value* input : node.inputs()) {
      extend(plan_.placements.at(input), now);
      --readers_[views_.whole(input)];
    }
    std::vector<DyingInput> dying;
    if (options_.reuse && kernels_[step] != nullptr) dying = dying_inputs(node, step);
    for (const auto& output : node.outputs()) {
      const Value* whole = views_.whole(output.get());
      if (whole == output.get()) {
        if (plan_.placements.contains(output.get())) continue;  // an update in place
        size_t block = take_block_to_overwrite(*output, kernels_[step], dying);
        if (block == StoragePlan::kNone) block = add_block_of(*output, now);
        plan_.placements[output.get()] = {StorageKind::arena, block, ""};
      } else {  // made where it is a part of another, whose memory is there from its first part on
        if (!plan_.placements.contains(whole))
          plan_.placements[whole] = {StorageKind::arena, add_block_of(*whole, now), ""};
        place_in_whole(output.get());
        extend(plan_.placements.at(output.get()), now);
      }
    }
    const int64_t workspace = kernels_[step] == nullptr ? 0 : kernels_[step]->workspace_bytes();
    if (workspace > 0) plan_.workspace_blocks.back() = add_block(node.name() + ":workspace", workspace, now);
    if (lanes_.on_lane[step]) keep_for_lane(step);
  }

  // Until it was waited for, whoever else has read it by then.
  void keep_for_lane(size_t step) {
    const Node& node = *schedule_.every_run[step];
    std::vector<size_t> blocks;
    const auto add = [&](const Value* value) {
      const Placement& placement = plan_.placements.at(value);
      if (placement.kind == StorageKind::arena) blocks.push_back(placement.index);
    };
    for (const Value* input : node.inputs()) add(input);
    for (const auto& output : node.outputs()) add(output.get());
    if (plan_.workspace_blocks[step] != StoragePlan::kNone) blocks.push_back(plan_.workspace_blocks[step]);
    const size_t joined = lanes_.joined[step];
    for (const size_t block : blocks) {
      plan_.memory.blocks[block].last =
          std::max(plan_.memory.blocks[block].last, static_cast<int64_t>(joined));
      size_t& busy_until = busy_until_[block];
      busy_until = std::max(busy_until, joined);
    }
  }

  // Whether the lane may still read the block when the step begins. What is on the lane itself comes after
  // that.
  bool is_busy(size_t block, size_t step) const {
    const auto busy = busy_until_.find(block);
    return busy != busy_until_.end() && busy->second > step && !lanes_.on_lane[step];
  }

  size_t add_block_of(const Value& value, int64_t step) {
    return add_block(value.name(), value.type().bytes(), step, to_string(value.type()));
  }

  size_t add_block(const std::string& name, int64_t bytes, int64_t step, const std::string& type = "") {
    plan_.memory.blocks.push_back({name, bytes, step, step, -1, type});
    return plan_.memory.blocks.size() - 1;
  }

  // A block that nothing reads after a node, filled by what the node reads.
  struct DyingInput {
    size_t block;
    std::vector<size_t> places;  // where the node reads it
  };

  // In the order of the inputs.
  std::vector<DyingInput> dying_inputs(const Node& node, size_t step) const {
    std::vector<DyingInput> result;
    std::unordered_map<const Value*, size_t> known;  // by root
    std::set<size_t> read_in_part;                   // blocks
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Value* input = node.input(i);
      const Placement& placement = plan_.placements.at(input);
      if (placement.kind != StorageKind::arena || readers_.at(views_.whole(input)) != 0) continue;
      if (plan_.memory.blocks[placement.index].bytes != input->type().bytes()) {
        read_in_part.insert(placement.index);
        continue;
      }
      if (is_busy(placement.index, step)) continue;
      const auto [entry, added] = known.emplace(views_.whole(input), result.size());
      if (added) result.push_back({placement.index, {}});
      result[entry->second].places.push_back(i);
    }
    // A part is read with another index than the whole: it may be gone by then.
    std::erase_if(result, [&](const DyingInput& input) { return read_in_part.contains(input.block); });
    return result;
  }

  // The first of them that is as large as the output, and that the kernel may write over; it is taken away.
  size_t take_block_to_overwrite(const Value& output, const Kernel* kernel,
                                 std::vector<DyingInput>& dying) const {
    const int64_t bytes = output.type().bytes();
    const auto fits = [&](const DyingInput& input) {
      // Read twice by this node: every one of its places must allow it.
      return plan_.memory.blocks[input.block].bytes == bytes &&
             std::all_of(input.places.begin(), input.places.end(),
                         [&](size_t place) { return kernel->may_overwrite(output.index(), place); });
    };
    const auto found = std::find_if(dying.begin(), dying.end(), fits);
    if (found == dying.end()) return StoragePlan::kNone;
    const size_t block = found->block;
    dying.erase(found);
    return block;
  }

  void extend(const Placement& placement, int64_t step) {
    if (placement.kind != StorageKind::arena) return;
    MemoryBlock& block = plan_.memory.blocks[placement.index];
    block.last = std::max(block.last, step);
  }

  void keep_to_the_end(const Value* value) { extend(plan_.placements.at(value), last_step()); }

  const Graph& graph_;
  const Schedule& schedule_;
  const Views& views_;
  const LanePlan& lanes_;
  const std::vector<Kernel*>& kernels_;
  StorageOptions options_;
  StoragePlan plan_;
  std::unordered_map<size_t, size_t>
      busy_until_;  // of a block that the lane uses: the step that waits for it
  std::unordered_map<const Value*, size_t> readers_;
};

}  // namespace

StoragePlan plan_storage(const Graph& graph, const Schedule& schedule, const Views& views,
                         const LanePlan& lanes, const std::vector<Kernel*>& kernels,
                         const StorageOptions& options) {
  return StoragePlanner(graph, schedule, views, lanes, kernels, options).run();
}

void reserve_arena(const MemoryPlan& plan, const std::string& graph, Workspace& workspace) {
  // What the workspace has now is free for it.
  std::optional<int64_t> free_bytes = workspace.device()->free_bytes();
  if (free_bytes.has_value()) *free_bytes += workspace.bytes();
  check_fits(plan, graph, workspace.device()->description().memory_bytes, free_bytes);
  try {
    workspace.reserve(std::max<int64_t>(plan.peak_bytes, 1));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    refuse_memory(plan, graph, error.what());
  }
}

}  // namespace tessera
