// Storage plans of random graphs of parts, joins, reshapes and updates, played through: what each node reads
// is what it was meant to read.
#include <functional>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

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

// Memory as rows, each with the number of what it holds.
class Play {
 public:
  Play(const Graph& graph, const Schedule& schedule, const Views& views, const StoragePlan& plan)
      : graph_(graph), schedule_(schedule), views_(views), plan_(plan) {
    for (const auto& input : graph.inputs()) {
      define(input.get());
      write(input.get());
    }
    for (const auto& node : graph.nodes()) define(*node);
  }

  std::string run() {
    for (size_t step = 0; step < schedule_.every_run.size(); ++step) {
      const Node& node = *schedule_.every_run[step];
      if (views_.is_alias(node)) continue;
      for (const Value* input : node.inputs()) check(input, "node " + node.name());
      if (const size_t block = plan_.workspace_blocks[step]; block != StoragePlan::kNone) {
        const MemoryBlock& memory = plan_.memory.blocks[block];
        for (int64_t byte = 0; byte < memory.bytes; byte += kRow) arena_[(memory.offset + byte) / kRow] = -1;
      }
      for (const auto& output : node.outputs()) write(output.get());
    }
    for (const auto& output : graph_.outputs()) check(output.value, "output " + output.name);
    for (size_t i = 0; i < graph_.updates().size(); ++i) {
      check(graph_.updates()[i].next, "update of " + graph_.updates()[i].state->name());
    }
    return faults_;
  }

 private:
  using Rows = std::vector<int64_t>;

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
  const StoragePlan& plan_;
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
};

void play(uint64_t seed, Counts& counts) {
  Drawn drawn(seed);
  const auto graph = random_graph(drawn);
  const Schedule order = schedule(*graph, false);
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
    const StoragePlan plan = plan_storage(*graph, order, *each, pointers, {.reuse = true, .alignment = kRow});
    const std::string faults = Play(*graph, order, *each, plan).run();
    ASSERT_EQ(faults, "") << "seed " << seed << "\n" << print(*graph);
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
    play(seed, counts);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(counts.parts, 1500);
  EXPECT_GT(counts.joins, 300);
  EXPECT_GT(counts.copies, 1500);
}

}  // namespace
}  // namespace tessera
