#include "compile/value_lives.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tessera/base/rounding.h"

namespace tessera {

ValueLives::ValueLives(const Graph& graph, const Schedule& schedule, const Views& views, int64_t alignment)
    : alignment_(alignment) {
  // What runs do not make lies elsewhere.
  std::unordered_set<const Value*> elsewhere;
  for (size_t i = 0; i < graph.updates().size(); ++i) {
    if (schedule.in_place_updates[i]) elsewhere.insert(graph.updates()[i].next);
  }
  const auto use = [&](const Value* value, int64_t step) {
    const Value* whole = views.whole(value);
    if (whole->producer() == nullptr || schedule.settled.contains(whole) || elsewhere.contains(whole)) return;
    extend(whole, step);
  };
  const auto steps = static_cast<int64_t>(schedule.every_run.size());
  for (int64_t step = 0; step < steps; ++step) {
    const Node& node = *schedule.every_run[static_cast<size_t>(step)];
    if (views.is_alias(node)) continue;
    for (const Value* input : node.inputs()) use(input, step);
    for (const auto& output : node.outputs()) use(output.get(), step);
  }
  for (const auto& output : graph.outputs()) use(output.value, steps);
  for (const auto& update : graph.updates()) use(update.next, steps);
  find_peak(steps);
}

void ValueLives::extend(const Value* whole, int64_t step) {
  const auto [place, added] = lives_.try_emplace(whole);
  Life& life = place->second;
  if (added) life = {step, step, round_up(whole->type().bytes(), alignment_)};
  life.last = step;
}

void ValueLives::find_peak(int64_t steps) {
  std::vector<int64_t> change(static_cast<size_t>(steps) + 2, 0);
  for (const auto& [value, life] : lives_) {
    change[static_cast<size_t>(life.first)] += life.bytes;
    change[static_cast<size_t>(life.last) + 1] -= life.bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  const auto peak = std::max_element(change.begin(), change.end());
  peak_step_ = peak - change.begin();
  peak_bytes_ = *peak;
}

std::unordered_set<const Value*> ValueLives::larger_at_peak(const ValueLives& others,
                                                            const Views& views) const {
  std::unordered_map<const Value*, int64_t> kept;
  for (const auto& [value, life] : others.lives_) {
    if (life.holds(peak_step_)) kept[views.whole(value)] += life.bytes;
  }
  std::unordered_set<const Value*> result;
  for (const auto& [value, life] : lives_) {
    if (life.holds(peak_step_) && kept[value] < life.bytes) result.insert(value);
  }
  return result;
}

}  // namespace tessera
