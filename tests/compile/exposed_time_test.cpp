// What of a step's collectives is hidden by other work.
#include "tessera/compile/exposed_time.h"

#include <gtest/gtest.h>

#include "tessera/distribute/exchange.h"

#include "support/lane_device.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

TimeSpan span(int begin, int end) {
  const auto at = [](int seconds) { return Clock::time_point(std::chrono::seconds(seconds)); };
  return {at(begin), at(end)};
}

TEST(ExposedTime, IsWhatNothingElseCovers) {
  EXPECT_EQ(covered_seconds({}), 0);
  EXPECT_EQ(covered_seconds({span(3, 3)}), 0);
  EXPECT_EQ(covered_seconds({span(5, 7), span(1, 2), span(6, 9)}), 5);
  EXPECT_EQ(covered_seconds({span(1, 9), span(2, 3), span(9, 10)}), 9);

  EXPECT_EQ(exposed_seconds({}, {span(0, 5)}), 0);
  EXPECT_EQ(exposed_seconds({span(1, 4)}, {}), 3);
  EXPECT_EQ(exposed_seconds({span(1, 4)}, {span(4, 6), span(0, 1)}), 3);  // beside nothing
  EXPECT_EQ(exposed_seconds({span(1, 4)}, {span(0, 2), span(2, 5)}), 0);  // all hidden
  EXPECT_EQ(exposed_seconds({span(1, 10)}, {span(0, 2), span(4, 5), span(8, 12)}), 5);
  EXPECT_EQ(exposed_seconds({span(1, 4), span(3, 6), span(8, 9)}, {span(2, 5)}), 3);  // several lanes
}

TEST(ExposedTime, OfAStepIsThatOfItsCollectives) {
  const auto node = [](const std::string& name, bool once = false) {
    NodeReport report;
    report.operator_name = name;
    report.once = once;
    return report;
  };
  const CollectiveTime time = collective_time(
      {node("sqrt", true), node("matmul"), node("all_reduce"), node("fused:exp"), node("reduce_scatter")},
      {.nodes = {{}, span(10, 14), span(12, 17), span(14, 16), span(17, 20)}});
  EXPECT_EQ(time.step, 10);
  EXPECT_EQ(time.all, 8);
  EXPECT_EQ(time.exposed, 4);
  EXPECT_EQ(time.share(), 0.4);
  EXPECT_EQ(collective_time({}, {}).share(), 0);
  EXPECT_EQ(collective_time({node("matmul")}, {.nodes = {span(0, 2)}}).all, 0);
}

// The lane works only while the queue waits for it: all of that is exposed, and no node's own time.
TEST(ExposedTime, IsNoTimeOfTheNodeThatWaits) {
  const auto device = std::make_shared<LaneDevice>();
  const auto graph = parse_graph(R"(graph g(input %x: fp32[64, 64]) {
  %a = matmul(%x, %x)
  %sum = all_reduce(%a) {ranks = 2}
  %b = matmul(%a, %x)
  %y = add(%b, %sum)
  output y = %y
})");
  CompileOptions options;
  options.passes.fuse = false;
  options.communicators[""] = distribute::thread_group(2).front();
  const auto executable = compile(*graph, device, options);
  executable->bind(std::make_shared<Variables>(device));
  executable->stage({{"x", random_tensor(DataType::fp32, {64, 64}, -1, 1, 1)}});
  const NodeTimes times = executable->profile({});
  ASSERT_TRUE(times.recorded);
  const auto time_of = [&](const std::string& name) {
    for (size_t i = 0; i < times.nodes.size(); ++i) {
      if (executable->nodes()[i].name == name) return times.nodes[i];
    }
    ADD_FAILURE() << name;
    return TimeSpan{};
  };
  EXPECT_GE(time_of("sum").begin, time_of("b").end);
  EXPECT_GE(time_of("y").begin, time_of("sum").end);
  EXPECT_GT(time_of("y").end, time_of("y").begin);
  const CollectiveTime time = collective_time(executable->nodes(), times);
  EXPECT_GT(time.all, 0);
  EXPECT_EQ(time.exposed, time.all);
}

}  // namespace
}  // namespace tessera::testing
