// Collectives beside the rest of a run: when they begin, who waits for them, and what explain says.
#include <algorithm>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/distribute/exchange.h"
#include "tessera/graph/operator.h"

#include "compile/lane_check.h"
#include "compile/lane_plan.h"
#include "support/expect_error.h"
#include "support/lane_device.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

bool is_all_reduce(const Node& node) {
  return node.operator_name() == "all_reduce";
}

std::vector<std::string> order_of(const std::string& text) {
  const auto graph = parse_graph(text);
  std::vector<std::string> names;
  for (const Node* node : schedule(*graph, false, is_all_reduce).every_run) names.push_back(node->name());
  return names;
}

using Names = std::vector<std::string>;

// %scaled is the last of the graph, but all that the collective waits for.
TEST(Lanes, BeginAsSoonAsTheirInputsAreThere) {
  EXPECT_EQ(order_of(R"(graph g(input %x: fp32[8, 8]) {
  %a = matmul(%x, %x)
  %b = matmul(%a, %x)
  %c = matmul(%b, %x)
  %scaled = negate(%a)
  %sum = all_reduce(%scaled) {ranks = 2}
  output c = %c
  output sum = %sum
})"),
            (Names{"a", "scaled", "sum", "b", "c"}));
}

// %used would free memory, and comes last.
TEST(Lanes, AreWaitedForWhenNothingElseIsLeft) {
  EXPECT_EQ(order_of(R"(graph g(input %x: fp32[8, 8]) {
  %a = matmul(%x, %x)
  %sum = all_reduce(%a) {ranks = 2}
  %used = reduce_sum(%sum)
  %b = matmul(%a, %x)
  %c = matmul(%b, %x)
  output c = %c
  output used = %used
})"),
            (Names{"a", "sum", "b", "c", "used"}));
}

// What waits for an earlier one comes before what waits for a later one, and what waits for none before both.
TEST(Lanes, AreWaitedForInTheirOrder) {
  EXPECT_EQ(order_of(R"(graph g(input %x: fp32[8, 8]) {
  %a = matmul(%x, %x)
  %b = matmul(%a, %x)
  %late = all_reduce(%b) {ranks = 2}
  %soon = all_reduce(%a) {ranks = 2}
  %of_late = exp(%late)
  %of_soon = exp(%soon)
  %c = tanh(%b)
  output late = %of_late
  output soon = %of_soon
  output c = %c
})"),
            (Names{"a", "soon", "b", "late", "c", "of_soon", "of_late"}));
}

TEST(Lanes, ChangeNothingWhereNothingTakesThem) {
  const auto graph = parse_graph(R"(graph g(input %x: fp32[8]) {
  %b = exp(%x)
  %sum = all_reduce(%x) {ranks = 2}
  %c = add(%b, %sum)
  output c = %c
})");
  const Schedule order = schedule(*graph, false);
  EXPECT_TRUE(order.on_lane.empty());
  EXPECT_EQ(order.every_run.front()->name(), "b");
}

constexpr const char* kStep = R"(graph g(input %x: fp32[8, 8], state %w: fp32[8, 8]) {
  %a = matmul(%x, %w)
  %b = matmul(%a, %x)
  %c = matmul(%b, %a)
  %second = negate(%b)
  %first = negate(%a)
  %sum_of_first = all_reduce(%first) {ranks = 2}
  %sum_of_second = all_reduce(%second) {ranks = 2}
  %sums = add(%sum_of_first, %sum_of_second)
  %next = add(%w, %sums)
  %y = exp(%c)
  output y = %y
  update %w = %next
})";

TEST(Lanes, KeepTheMemoryOfWhatIsUnderWay) {
  const auto graph = parse_graph(kStep);
  const Schedule order = schedule(*graph, false, is_all_reduce);
  const Views views = find_views(*graph, order, {});
  const LanePlan lanes = plan_lanes(*graph, order, views);
  const std::vector<Kernel*> none(order.every_run.size(), nullptr);
  const StoragePlan plan = plan_storage(*graph, order, views, lanes, none, {});
  verify(plan.memory);
  verify(lanes, order, views, plan);
  const auto step_of = [&](const std::string& name) {
    return std::find_if(order.every_run.begin(), order.every_run.end(),
                        [&](const Node* node) { return node->name() == name; }) -
           order.every_run.begin();
  };
  const auto sums = static_cast<size_t>(step_of("sums"));
  for (const char* collective : {"sum_of_first", "sum_of_second"}) {
    const auto step = static_cast<size_t>(step_of(collective));
    EXPECT_TRUE(lanes.on_lane[step]);
    EXPECT_EQ(lanes.joined[step], sums) << collective;
  }
  EXPECT_EQ(lanes.waits_for[sums], static_cast<size_t>(step_of("sum_of_second")));
  EXPECT_EQ(std::count(lanes.waits_for.begin(), lanes.waits_for.end(), LanePlan::kNone),
            std::ssize(order.every_run) - 1);
  for (const MemoryBlock& block : plan.memory.blocks) {
    const bool is_under_way = block.name == "first" || block.name == "second" || block.name == "sum_of_first";
    if (is_under_way) {
      EXPECT_GE(block.last, static_cast<int64_t>(sums)) << block.name;
    }
  }
  // A plan for which it would be over at once.
  Schedule alone = order;
  alone.on_lane.clear();
  const StoragePlan wrong = plan_storage(*graph, alone, views, plan_lanes(*graph, alone, views), none, {});
  EXPECT_ERROR(verify(lanes, order, views, wrong), ErrorCode::internal, "may be at work on the lane");
}

// The update writes over the variable that the collective reads.
TEST(Lanes, AreWaitedForByWhatOverwritesAVariableThatTheyRead) {
  const auto graph = parse_graph(R"(graph g(input %x: fp32[8], state %w: fp32[8]) {
  %mean = all_reduce(%w) {ranks = 2}
  %next = exp(%x)
  output mean = %mean
  update %w = %next
})");
  const Schedule order = schedule(*graph, false, is_all_reduce);
  ASSERT_TRUE(order.in_place_updates.front());
  const LanePlan lanes = plan_lanes(*graph, order, find_views(*graph, order, {}));
  ASSERT_EQ(order.every_run.back()->name(), "next");
  EXPECT_EQ(lanes.waits_for.back(), 0u);
}

struct Outcome {
  std::vector<Tensor> results;
  LaneLog last_run;
  std::vector<NodeReport> nodes;
};

// Of four runs, of which the third and fourth are recorded.
Outcome run_on(const std::shared_ptr<LaneDevice>& device, const std::string& text) {
  CompileOptions options;
  options.passes.fuse = false;
  options.communicators[""] = distribute::thread_group(2).front();
  const auto executable = compile(*parse_graph(text), device, options);
  const auto variables = std::make_shared<Variables>(device);
  variables->set("w", random_tensor(DataType::fp32, {8, 8}, -0.1, 0.1, 9));
  executable->bind(variables);
  Outcome outcome{.results = {}, .last_run = {}, .nodes = executable->nodes()};
  for (uint64_t run = 0; run < 4; ++run) {
    device->log->clear();
    outcome.results.push_back(
        executable->run({{"x", random_tensor(DataType::fp32, {8, 8}, -0.1, 0.1, run)}}).at("y"));
  }
  outcome.last_run = *device->log;
  outcome.results.push_back(variables->get("w"));
  return outcome;
}

TEST(Lanes, GiveWhatOneQueueGives) {
  const auto late = std::make_shared<LaneDevice>();
  const Outcome beside = run_on(late, kStep);
  const Outcome alone = run_on(std::make_shared<LaneDevice>(false), kStep);
  for (size_t i = 0; i < alone.results.size(); ++i)
    EXPECT_TRUE(beside.results[i].identical(alone.results[i])) << i;
  EXPECT_EQ(late->connections, 1);
  EXPECT_EQ(beside.last_run, (LaneLog{"matmul", "negate", "fork", "matmul", "negate", "fork", "matmul", "exp",
                                      "wait", "(all_reduce)", "(all_reduce)", "add", "add"}));
  EXPECT_EQ(alone.last_run, (LaneLog{"matmul", "negate", "(all_reduce)", "matmul", "negate", "(all_reduce)",
                                     "matmul", "exp", "add", "add"}));
}

TEST(Lanes, AreSeenInTheReport) {
  for (const NodeReport& node : run_on(std::make_shared<LaneDevice>(), kStep).nodes) {
    const bool is_collective = node.operator_name == "all_reduce";
    EXPECT_EQ(node.lane, is_collective ? "until 'sums'" : "") << node.name;
    EXPECT_EQ(node.kernel, is_collective ? "late" : "logged");
  }
}

// Until the run's end, where nothing reads the result.
TEST(Lanes, AreEmptyAtTheEndOfARun) {
  const std::string text = R"(graph g(input %x: fp32[8, 8], state %w: fp32[8, 8]) {
  %y = all_reduce(%x) {ranks = 2}
  %z = exp(%w)
  output y = %y
  update %w = %z
})";
  const Outcome outcome = run_on(std::make_shared<LaneDevice>(), text);
  EXPECT_EQ(outcome.last_run, (LaneLog{"fork", "exp", "wait", "(all_reduce)"}));
  EXPECT_EQ(outcome.nodes.front().lane, "until the end");
}

// A group of one has nobody to wait for.
TEST(Lanes, TakeWhatTheDeviceDoesItself) {
  const std::string text = R"(graph g(input %x: fp32[8, 8], state %w: fp32[8, 8]) {
  %sum = all_reduce(%x) {ranks = 2}
  %all = all_gather(%w) {ranks = 1}
  %z = exp(%all)
  %y = add(%z, %sum)
  output y = %y
})";
  const Outcome outcome = run_on(std::make_shared<LaneDevice>(), text);
  const auto by_name = [&](const std::string& name) {
    return *std::find_if(outcome.nodes.begin(), outcome.nodes.end(),
                         [&](const NodeReport& node) { return node.name == name; });
  };
  EXPECT_EQ(by_name("all").kernel, "communicator");
  EXPECT_EQ(by_name("all").lane, "");
  EXPECT_EQ(by_name("sum").lane, "until 'y'");
}

}  // namespace
}  // namespace tessera::testing
