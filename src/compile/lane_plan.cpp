#include "compile/lane_plan.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

namespace tessera {

bool LanePlan::is_empty() const {
  return std::none_of(on_lane.begin(), on_lane.end(), [](bool on) { return on; });
}

std::string LanePlan::describe(size_t step, const Schedule& schedule) const {
  if (!on_lane[step]) return "";
  if (joined[step] == on_lane.size()) return "until the end";
  return fmt::format("until '{}'", schedule.every_run[joined[step]]->name());
}

namespace {

class LanePlanner {
 public:
  LanePlanner(const Graph& graph, const Schedule& schedule, const Views& views)
      : schedule_(schedule), views_(views) {
    for (size_t i = 0; i < graph.updates().size(); ++i) {
      const auto& [state, next] = graph.updates()[i];
      if (schedule.in_place_updates[i]) written_by_[next->producer()].push_back(state);
    }
  }

  LanePlan run() {
    const size_t steps = schedule_.every_run.size();
    plan_.on_lane.assign(steps, false);
    plan_.waits_for.assign(steps, LanePlan::kNone);
    plan_.joined.assign(steps, LanePlan::kNone);
    for (size_t step = 0; step < steps; ++step) add(step);
    join(steps, steps);
    return std::move(plan_);
  }

 private:
  void add(size_t step) {
    const Node& node = *schedule_.every_run[step];
    if (views_.is_alias(node)) return;
    if (schedule_.on_lane.contains(&node)) {
      plan_.on_lane[step] = true;
      flying_.push_back(step);
      for (const Value* input : node.inputs()) last_reader_[views_.whole(input)] = step;
      for (const auto& output : node.outputs()) last_writer_[views_.whole(output.get())] = step;
      return;
    }
    std::optional<size_t> wait;
    const auto wait_for = [&](const auto& steps, const Value* whole) {
      const auto found = steps.find(whole);
      if (found != steps.end() && (!wait.has_value() || found->second > *wait)) wait = found->second;
    };
    for (const Value* input : node.inputs()) wait_for(last_writer_, views_.whole(input));
    if (const auto written = written_by_.find(&node); written != written_by_.end()) {
      for (const Value* state : written->second) wait_for(last_reader_, state);
    }
    if (!wait.has_value() || flying_.empty() || *wait < flying_.front()) return;
    plan_.waits_for[step] = *wait;
    join(*wait + 1, step);
  }

  // All on the lane before that step.
  void join(size_t end, size_t waiting) {
    const auto joined =
        std::find_if(flying_.begin(), flying_.end(), [&](size_t step) { return step >= end; });
    for (auto step = flying_.begin(); step != joined; ++step) plan_.joined[*step] = waiting;
    flying_.erase(flying_.begin(), joined);
  }

  const Schedule& schedule_;
  const Views& views_;
  std::unordered_map<const Node*, std::vector<const Value*>> written_by_;
  LanePlan plan_;
  std::vector<size_t> flying_;                            // in their order
  std::unordered_map<const Value*, size_t> last_reader_;  // on the lane, of what lies in no other's memory
  std::unordered_map<const Value*, size_t> last_writer_;
};

}  // namespace

LanePlan plan_lanes(const Graph& graph, const Schedule& schedule, const Views& views) {
  return LanePlanner(graph, schedule, views).run();
}

}  // namespace tessera
