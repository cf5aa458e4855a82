// Storage plans of random graphs of parts, joins, reshapes and updates, with some nodes on a lane, played
// through: what each node reads is what it was meant to read.
#include <functional>
#include <map>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "compile/lane_check.h"
#include "compile/lane_plan.h"
#include "compile/storage.h"
#include "compile/value_lives.h"
#include "compile/views.h"

namespace tessera {
namespace {

constexpr int64_t kWidth = 16;
constexpr int64_t kRow = 64;  // bytes, and the alignment

class Drawn {
 public:
  explicit Drawn(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_.below(count_++, static_cast<uint64_t>(bound)));
  }

 private:
  Random random_;
  uint64_t count_ = 0;
};

int64_t rows_of(const Value* value) {
  return value->type().bytes() / kRow;
}

std::unique_ptr<Graph> random_graph(Drawn& drawn) {
  auto graph = std::make_unique<Graph>();
  std::vector<Value*> values;
  std::vector<Value*> states;
  for (int i = 0; i < 3; ++i) {
    const SymbolicShape shape{1 + drawn.below(4), kWidth};
    values.push_back(graph->add_input(InputRole::input, "x" + std::to_string(i), {DataType::fp32, shape}));
    states.push_back(graph->add_input(InputRole::state, "s" + std::to_string(i), {DataType::fp32, shape}));
    values.push_back(states.back());
  }
  const auto any = [&] {
    return values[static_cast<size_t>(drawn.below(static_cast<int64_t>(values.size())))];
  };
  const auto latest = [&] {
    const auto count = static_cast<int64_t>(values.size());
    return values[static_cast<size_t>(count - 1 - drawn.below(std::min<int64_t>(count, 5)))];
  };
  for (int i = 0; i < 40; ++i) {
    Value* x = drawn.below(2) == 0 ? any() : latest();
    const int64_t rows = rows_of(x);
    switch (drawn.below(6)) {
      case 0: {
        const int64_t first = drawn.below(rows);
        values.push_back(ops::slice(x, {first, 0}, {first + 1 + drawn.below(rows - first), kWidth}));
        break;
      }
      case 1: {
        const int64_t cut = drawn.below(rows + 1);
        for (Value* part : ops::split(x, {cut, rows - cut}, 0)) {
          if (rows_of(part) > 0) values.push_back(part);
        }
        break;
      }
      case 2: {
        std::vector<Value*> parts{x};
        for (int64_t more = drawn.below(4); more > 0; --more)
          parts.push_back(drawn.below(2) == 0 ? any() : latest());
        Value* joined = ops::concat(parts, 0);
        if (rows_of(joined) <= 40) values.push_back(joined);
        break;
      }
      case 3:
        values.push_back(ops::reshape(ops::reshape(x, {rows * kWidth}), {rows, kWidth}));
        break;
      case 4:
        values.push_back(ops::exp(x));
        break;
      default: {
        Value* y = any();
        values.push_back(ops::add(x, rows_of(y) == rows ? y : ops::slice(y, {0, 0}, {1, kWidth})));
      }
    }
  }
  for (int i = 0; i < 4; ++i) graph->add_output("y" + std::to_string(i), i < 2 ? latest() : any());
  for (Value* state : states) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      Value* next = any();
      if (next->type() != state->type()) continue;
      graph->add_update(state, next);
      break;
    }
  }
  return graph;
}

// Writes over whatever it is asked about, half of the time.
class AnyKernel : public Kernel {
 public:
  explicit AnyKernel(int64_t drawn) : drawn_(drawn) {}
  int64_t workspace_bytes() const override { return drawn_ % 3 == 0 ? kRow * drawn_ : 0; }
  bool may_overwrite(size_t, size_t input) const override { return ((drawn_ >> input) & 1) != 0; }
  void run(const KernelArguments&) override {}

 private:
  int64_t drawn_;
};

// When the lane does its steps: as soon as it may, or not before somebody waits for them.
enum class Lane : uint8_t { early, late };

// Memory as rows, each with the number of what it holds.
class Play {
 public:
  Play(const Graph& graph, const Schedule& schedule, const Views& views, const LanePlan& lanes,
       const StoragePlan& plan, Lane lane)
      : graph_(graph), schedule_(schedule), views_(views), lanes_(lanes), plan_(plan), lane_(lane) {
    for (const auto& input : graph.inputs()) {
      define(input.get());
      write(input.get());
    }
    for (const auto& node : graph.nodes()) define(*node);
  }

  std::string run() {
    const size_t steps = schedule_.every_run.size();
    for (size_t step = 0; step < steps; ++step) {
      if (lanes_.waits_for[step] != LanePlan::kNone) play_lane(lanes_.waits_for[step]);
      if (lanes_.on_lane[step] && lane_ == Lane::late) {
        waiting_.push_back(step);
      } else {
        play(step);
      }
    }
    play_lane(steps);
    for (const auto& output : graph_.outputs()) check(output.value, "output " + output.name);
    for (size_t i = 0; i < graph_.updates().size(); ++i) {
      check(graph_.updates()[i].next, "update of " + graph_.updates()[i].state->name());
    }
    return faults_;
  }

 private:
  using Rows = std::vector<int64_t>;

  void play(size_t step) {
    const Node& node = *schedule_.every_run[step];
    if (views_.is_alias(node)) return;
    for (const Value* input : node.inputs()) check(input, "node " + node.name());
    if (const size_t block = plan_.workspace_blocks[step]; block != StoragePlan::kNone) {
      const MemoryBlock& memory = plan_.memory.blocks[block];
      for (int64_t byte = 0; byte < memory.bytes; byte += kRow) arena_[(memory.offset + byte) / kRow] = -1;
    }
    for (const auto& output : node.outputs()) write(output.get());
  }

  // Up to that step.
  void play_lane(size_t last) {
    for (const size_t step : waiting_) {
      if (step <= last) play(step);
    }
    std::erase_if(waiting_, [&](size_t step) { return step <= last; });
  }

  void define(const Value* value) {
    Rows& rows = meant_[value];
    for (int64_t row = 0; row < rows_of(value); ++row) rows.push_back(++numbers_);
  }

  void define(const Node& node) {
    if (node.schema().traits.view) {
      meant_[node.output()] = meant_.at(node.input(0));
    } else if (node.operator_name() == "concat") {
      for (const Value* input : node.inputs()) {
        const Rows& part = meant_.at(input);
        meant_[node.output()].insert(meant_[node.output()].end(), part.begin(), part.end());
      }
    } else if (node.schema().result_offsets != nullptr) {
      const std::vector<int64_t> offsets = node.schema().result_offsets(node);
      for (const auto& output : node.outputs()) {
        const auto first = meant_.at(node.input(0)).begin() + offsets.at(output->index()) / kRow;
        meant_[output.get()] = Rows(first, first + rows_of(output.get()));
      }
    } else {
      for (const auto& output : node.outputs()) define(output.get());
    }
  }

  int64_t* memory(const Value* value) {
    const Placement& placement = plan_.placements.at(value);
    const int64_t row = placement.offset / kRow;
    if (placement.kind == StorageKind::arena)
      return &arena_[plan_.memory.blocks[placement.index].offset / kRow + row];
    return &elsewhere_[placement.variable + "/" + std::to_string(placement.index)][static_cast<size_t>(row)];
  }

  void write(const Value* value) {
    std::copy(meant_.at(value).begin(), meant_.at(value).end(), memory(value));
  }

  void check(const Value* value, const std::string& reader) {
    if (!std::equal(meant_.at(value).begin(), meant_.at(value).end(), memory(value)))
      faults_ += reader + " does not find " + value->name() + "\n";
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Views& views_;
  const LanePlan& lanes_;
  const StoragePlan& plan_;
  Lane lane_;
  std::vector<size_t> waiting_;  // on the lane
  int64_t numbers_ = 0;
  std::map<const Value*, Rows> meant_;
  std::array<int64_t, 4096> arena_{};
  std::map<std::string, std::array<int64_t, 64>> elsewhere_;
  std::string faults_;
};

struct Counts {
  int64_t parts = 0;
  int64_t joins = 0;
  int64_t copies = 0;
  int64_t beside = 0;  // steps between one on the lane and what waits for it
  int64_t faults_without_lanes = 0;
};

// Whether a plan that knows of no lane is found to be wrong for one.
bool is_refused_without_lanes(const Graph& graph, const Schedule& order, const Views& views,
                              const LanePlan& lanes, const std::vector<Kernel*>& kernels) {
  Schedule none = order;
  none.on_lane.clear();
  const StoragePlan plan = plan_storage(graph, none, views, plan_lanes(graph, none, views), kernels,
                                        {.reuse = true, .alignment = kRow});
  try {
    verify(lanes, order, views, plan);
    return false;
  } catch (const Error&) {
    return true;
  }
}

// One of `one_in` of the nodes that compute is on the lane; 0: none.
void play(uint64_t seed, int64_t one_in, Counts& counts) {
  Drawn drawn(seed);
  const auto graph = random_graph(drawn);
  std::set<const Node*> on_lane;
  for (const auto& node : graph->nodes()) {
    const bool computes = node->schema().operator_class == OperatorClass::elementwise;
    if (one_in > 0 && computes && drawn.below(one_in) == 0) on_lane.insert(node.get());
  }
  const Schedule order = schedule(*graph, false, [&](const Node& node) { return on_lane.contains(&node); });
  const Views views = find_views(*graph, order, {.reuse = true, .alignment = kRow});
  const Views whole = find_views(*graph, order, {.reuse = false, .alignment = kRow});
  EXPECT_LE(ValueLives(*graph, order, views, kRow).peak_bytes(),
            ValueLives(*graph, order, whole, kRow).peak_bytes());
  for (const Views* each : {&views, &whole}) {
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<Kernel*> pointers;
    for (const Node* node : order.every_run) {
      kernels.push_back(each->is_alias(*node) ? nullptr : std::make_unique<AnyKernel>(drawn.below(8)));
      pointers.push_back(kernels.back().get());
    }
    const LanePlan lanes = plan_lanes(*graph, order, *each);
    const StoragePlan plan =
        plan_storage(*graph, order, *each, lanes, pointers, {.reuse = true, .alignment = kRow});
    verify(lanes, order, *each, plan);
    for (const Lane lane : {Lane::early, Lane::late}) {
      const std::string faults = Play(*graph, order, *each, lanes, plan, lane).run();
      ASSERT_EQ(faults, "") << "seed " << seed << "\n" << print(*graph);
    }
    for (size_t step = 0; step < lanes.on_lane.size(); ++step) {
      if (lanes.on_lane[step]) counts.beside += static_cast<int64_t>(lanes.joined[step] - step - 1);
    }
    counts.faults_without_lanes += is_refused_without_lanes(*graph, order, *each, lanes, pointers) ? 1 : 0;
  }
  for (const Node* node : order.every_run) {
    if (node->schema().result_offsets == nullptr && node->schema().operand_offsets == nullptr) continue;
    const bool joins = node->operator_name() == "concat";
    ++(!views.is_alias(*node) ? counts.copies : joins ? counts.joins : counts.parts);
  }
}

TEST(RandomViews, EachNodeReadsWhatItIsMeantTo) {
  Counts counts;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    play(seed, 0, counts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(counts.parts, 1500);
  EXPECT_GT(counts.joins, 300);
  EXPECT_GT(counts.copies, 1500);
}

TEST(RandomLanes, KeepTheirMemoryUntilTheyAreWaitedFor) {
  Counts counts;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    play(seed, 2 + static_cast<int64_t>(seed % 4), counts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(counts.beside, 3000);
  EXPECT_GT(counts.faults_without_lanes, 100);
}

}  // namespace
}  // namespace tessera
