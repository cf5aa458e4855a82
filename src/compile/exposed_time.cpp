#include "tessera/compile/exposed_time.h"

#include <algorithm>
#include <utility>

#include "tessera/graph/operator.h"

namespace tessera {
namespace {

bool is_collective(const NodeReport& node) {
  const OperatorSchema* const schema = OperatorRegistry::instance().find(node.operator_name);
  return schema != nullptr && schema->operator_class == OperatorClass::communication;
}

// In whole ticks, so that what is hidden by nothing is exposed to the last of them.
Clock::duration covered(std::vector<TimeSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const TimeSpan& one, const TimeSpan& other) { return one.begin < other.begin; });
  Clock::duration total{};
  Clock::time_point end = Clock::time_point::min();
  for (const TimeSpan& span : spans) {
    if (span.end <= end) continue;
    total += span.end - std::max(span.begin, end);
    end = span.end;
  }
  return total;
}

double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

double covered_seconds(std::vector<TimeSpan> spans) {
  return seconds_of(covered(std::move(spans)));
}

double exposed_seconds(const std::vector<TimeSpan>& spans, const std::vector<TimeSpan>& others) {
  std::vector<TimeSpan> all = spans;
  all.insert(all.end(), others.begin(), others.end());
  return seconds_of(covered(std::move(all)) - covered(others));
}

CollectiveTime collective_time(const std::vector<NodeReport>& nodes, const NodeTimes& times) {
  std::vector<TimeSpan> collectives;
  std::vector<TimeSpan> others;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].once) (is_collective(nodes[i]) ? collectives : others).push_back(times.nodes[i]);
  }
  std::vector<TimeSpan> all = collectives;
  all.insert(all.end(), others.begin(), others.end());
  if (all.empty()) return {};
  const auto begins = [](const TimeSpan& one, const TimeSpan& other) { return one.begin < other.begin; };
  const auto ends = [](const TimeSpan& one, const TimeSpan& other) { return one.end < other.end; };
  const TimeSpan step{std::min_element(all.begin(), all.end(), begins)->begin,
                      std::max_element(all.begin(), all.end(), ends)->end};
  return {.step = step.seconds(),
          .all = covered_seconds(collectives),
          .exposed = exposed_seconds(collectives, others)};
}

}  // namespace tessera
