#include "compile/lane_check.h"

#include <optional>
#include <string>

#include "tessera/base/error.h"

namespace tessera {
namespace {

// Bytes of the arena, or of a variable.
struct MemoryRange {
  std::string variable;  // "": the arena
  int64_t begin = 0;
  int64_t end = 0;

  bool overlaps(const MemoryRange& other) const {
    return variable == other.variable && begin < other.end && other.begin < end;
  }
};

class LaneVerifier {
 public:
  LaneVerifier(const LanePlan& lanes, const Schedule& schedule, const Views& views,
               const StoragePlan& storage)
      : lanes_(lanes), schedule_(schedule), views_(views), storage_(storage) {}

  void run() {
    for (size_t step = 0; step < schedule_.every_run.size(); ++step) {
      const Node& node = *schedule_.every_run[step];
      if (views_.is_alias(node)) continue;
      if (lanes_.waits_for[step] != LanePlan::kNone)
        std::erase_if(flights_, [&](const Flight& flight) { return flight.step <= lanes_.waits_for[step]; });
      Flight flight{step, reads(node), writes(step)};
      if (lanes_.on_lane[step]) {
        flights_.push_back(std::move(flight));
        continue;
      }
      for (const Flight& flying : flights_) {
        check(flight.written, flying.read, step, flying.step);
        check(flight.written, flying.written, step, flying.step);
        check(flight.read, flying.written, step, flying.step);
      }
    }
  }

 private:
  struct Flight {
    size_t step;
    std::vector<MemoryRange> read;
    std::vector<MemoryRange> written;
  };

  std::optional<MemoryRange> range_of(const Value& value) const {
    const Placement& placement = storage_.placements.at(&value);
    const int64_t bytes = value.type().bytes();
    if (placement.kind == StorageKind::variable)
      return MemoryRange{placement.variable, placement.offset, placement.offset + bytes};
    if (placement.kind != StorageKind::arena) return std::nullopt;  // nobody writes it in a run
    const int64_t begin = storage_.memory.blocks[placement.index].offset + placement.offset;
    return MemoryRange{"", begin, begin + bytes};
  }

  std::vector<MemoryRange> reads(const Node& node) const {
    std::vector<MemoryRange> ranges;
    for (const Value* input : node.inputs()) {
      if (const auto range = range_of(*input)) ranges.push_back(*range);
    }
    return ranges;
  }

  std::vector<MemoryRange> writes(size_t step) const {
    std::vector<MemoryRange> ranges;
    for (const auto& output : schedule_.every_run[step]->outputs()) {
      if (const auto range = range_of(*output)) ranges.push_back(*range);
    }
    const size_t workspace = storage_.workspace_blocks[step];
    if (workspace != StoragePlan::kNone) {
      const MemoryBlock& block = storage_.memory.blocks[workspace];
      ranges.push_back({"", block.offset, block.offset + block.bytes});
    }
    return ranges;
  }

  void check(const std::vector<MemoryRange>& own, const std::vector<MemoryRange>& flying, size_t step,
             size_t flying_step) const {
    for (const MemoryRange& a : own) {
      for (const MemoryRange& b : flying) {
        require(!a.overlaps(b), ErrorCode::internal,
                "memory plan: '{}' uses {} from {} to {}, where '{}' may be at work on the lane",
                schedule_.every_run[step]->name(), a.variable.empty() ? "the arena" : a.variable, a.begin,
                a.end, schedule_.every_run[flying_step]->name());
      }
    }
  }

  const LanePlan& lanes_;
  const Schedule& schedule_;
  const Views& views_;
  const StoragePlan& storage_;
  std::vector<Flight> flights_;
};

}  // namespace

void verify(const LanePlan& lanes, const Schedule& schedule, const Views& views, const StoragePlan& storage) {
  LaneVerifier(lanes, schedule, views, storage).run();
}

}  // namespace tessera
