// Collectives as nodes of a graph, whose ranks are threads.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "support/detached_device.h"
#include "support/expect_error.h"
#include "support/ranks.h"

namespace tessera::testing {
namespace {

constexpr int64_t kRanks = 3;

// Six numbers of each rank.
Tensor numbers_of(int64_t rank) {
  Tensor x(DataType::fp32, {6});
  for (int64_t i = 0; i < 6; ++i) x.set(i, static_cast<double>(10 * rank + i));
  return x;
}

using Build = std::function<Value*(Value* x)>;

struct Results {
  std::vector<Tensor> y;
  std::vector<Tensor> gradient;  // of the sum of squares of all ranks' y
};

// The half sum of squares makes dy = y.
Results run_on_ranks(const Build& build, const std::function<std::shared_ptr<Device>()>& device) {
  Results results{std::vector<Tensor>(kRanks), std::vector<Tensor>(kRanks)};
  on_ranks(kRanks, [&](const std::shared_ptr<Communicator>& communicator) {
    Graph graph;
    Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {6}});
    Value* y = build(x);
    Value* loss = ops::multiply(ops::reduce_sum(ops::square(y)), 0.5);
    graph.add_output("gradient", differentiate(graph, loss, std::vector{x}).front());
    graph.add_output("y", y);
    CompileOptions options;
    options.communicators[""] = communicator;
    const auto executable = compile(graph, device(), options);
    executable->bind(std::make_shared<Variables>(executable->workspace()->device()));
    const auto outputs = executable->run({{"x", numbers_of(communicator->rank())}});
    const auto rank = static_cast<size_t>(communicator->rank());
    results.y[rank] = outputs.at("y");
    results.gradient[rank] = outputs.at("gradient");
  });
  return results;
}

// Whole numbers, of which fp32 rounds none.
void expect_values(const Tensor& tensor, const std::function<double(int64_t i)>& expected) {
  for (int64_t i = 0; i < tensor.size(); ++i) EXPECT_EQ(tensor.at(i), expected(i)) << i;
}

class Collective : public ::testing::TestWithParam<bool> {
 protected:
  // Also one whose memory is not the host's.
  Results run(const Build& build) const {
    return run_on_ranks(build, []() -> std::shared_ptr<Device> {
      if (GetParam()) return std::make_shared<DetachedDevice>();
      return Device::reference();
    });
  }
};

TEST_P(Collective, AllReduce) {
  const Results sum = run([](Value* x) { return ops::all_reduce(x, {.ranks = kRanks}); });
  const Results mean = run([](Value* x) { return ops::all_reduce(x, {.ranks = kRanks}, "mean"); });
  const Results most = run([](Value* x) { return ops::all_reduce(x, {.ranks = kRanks}, "maximum"); });
  for (size_t rank = 0; rank < kRanks; ++rank) {
    const auto total = [](int64_t i) { return 30.0 + 3.0 * static_cast<double>(i); };
    expect_values(sum.y[rank], total);
    expect_values(sum.gradient[rank], [&](int64_t i) { return 3 * total(i); });
    expect_values(mean.y[rank], [&](int64_t i) { return total(i) / 3; });
    expect_values(mean.gradient[rank], [&](int64_t i) { return total(i) / 3; });
    expect_values(most.y[rank], [&](int64_t i) { return 20.0 + static_cast<double>(i); });
    expect_values(most.gradient[rank],
                  [&](int64_t i) { return rank == 2 ? 3 * (20.0 + static_cast<double>(i)) : 0; });
  }
}

TEST_P(Collective, AllReduceOfSeveral) {
  const Results results = run([](Value* x) {
    const std::vector<Value*> both =
        ops::all_reduce({x, ops::reduce_sum(x, {.axes = {0}, .keep_dimensions = true})}, {.ranks = kRanks});
    return ops::concat(both, 0);
  });
  for (size_t rank = 0; rank < kRanks; ++rank) {
    expect_values(results.y[rank],
                  [](int64_t i) { return i < 6 ? 30.0 + 3.0 * static_cast<double>(i) : 225; });
    expect_values(results.gradient[rank],
                  [](int64_t i) { return 3 * (30.0 + 3.0 * static_cast<double>(i)) + 3 * 225; });
  }
}

TEST_P(Collective, AllReduceOfTwoTypes) {
  const Results results = run([](Value* x) {
    const std::vector<Value*> both = ops::all_reduce({x, ops::cast(x, DataType::bf16)}, {.ranks = kRanks});
    return ops::concat({both[0], ops::cast(both[1], DataType::fp32)}, 0);
  });
  const auto total = [](int64_t i) { return 30.0 + 3.0 * static_cast<double>(i % 6); };  // exact in bf16
  for (size_t rank = 0; rank < kRanks; ++rank) expect_values(results.y[rank], total);
}

TEST_P(Collective, ReduceScatterAndAllGather) {
  const Results part = run([](Value* x) { return ops::reduce_scatter(x, {.ranks = kRanks}); });
  const Results all = run([](Value* x) { return ops::all_gather(x, {.ranks = kRanks}); });
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    const auto own = static_cast<size_t>(rank);
    const auto total = [](int64_t i) { return 30.0 + 3.0 * static_cast<double>(i); };
    ASSERT_EQ(part.y[own].shape(), Shape{2});
    expect_values(part.y[own], [&](int64_t i) { return total(2 * rank + i); });
    expect_values(part.gradient[own], total);
    ASSERT_EQ(all.y[own].shape(), Shape{18});
    expect_values(all.y[own], [](int64_t i) { return static_cast<double>(10 * (i / 6) + i % 6); });
    expect_values(all.gradient[own], [&](int64_t i) { return 3.0 * static_cast<double>(10 * rank + i); });
  }
}

// Of two values of unlike shapes, of which the second's gradient is zero.
TEST_P(Collective, PartsOfSeveral) {
  const Results part = run([](Value* x) {
    const std::vector<Value*> both{x, ops::reshape(ops::concat({x, x}, 0), {6, 2})};
    return ops::apply("reduce_scatter", both, {{"ranks", kRanks}})->output(1);
  });
  const Results all = run([](Value* x) {
    return ops::apply("all_gather", {ops::square(x), x}, {{"ranks", kRanks}})->output(1);
  });
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    const auto own = static_cast<size_t>(rank);
    const auto total = [](int64_t i) { return 30.0 + 3.0 * static_cast<double>(i % 6); };
    ASSERT_EQ(part.y[own].shape(), (Shape{2, 2}));
    expect_values(part.y[own], [&](int64_t i) { return total(4 * rank + i); });
    expect_values(part.gradient[own], [&](int64_t i) { return 2 * total(i); });
    ASSERT_EQ(all.y[own].shape(), Shape{18});
    expect_values(all.y[own], [](int64_t i) { return static_cast<double>(10 * (i / 6) + i % 6); });
    expect_values(all.gradient[own], [&](int64_t i) { return 3.0 * static_cast<double>(10 * rank + i); });
  }
}

TEST_P(Collective, BroadcastAndReduce) {
  const Results given = run([](Value* x) { return ops::broadcast(x, {.ranks = kRanks}, 1); });
  const Results taken = run([](Value* x) { return ops::reduce(x, {.ranks = kRanks}, 1); });
  for (size_t rank = 0; rank < kRanks; ++rank) {
    const auto total = [](int64_t i) { return 30.0 + 3.0 * static_cast<double>(i); };
    const auto of_root = [](int64_t i) { return 10.0 + static_cast<double>(i); };
    expect_values(given.y[rank], of_root);
    expect_values(given.gradient[rank], [&](int64_t i) { return rank == 1 ? 3 * of_root(i) : 0; });
    expect_values(taken.y[rank], [&](int64_t i) { return rank == 1 ? total(i) : 0; });
    expect_values(taken.gradient[rank], total);
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, Collective, ::testing::Values(false, true));

std::unique_ptr<Graph> one_all_reduce(int64_t ranks) {
  auto graph = std::make_unique<Graph>();
  Value* x = graph->add_input(InputRole::input, "x", {DataType::fp32, {6}});
  graph->add_output("y", ops::all_reduce(x, {.ranks = ranks}));
  return graph;
}

TEST(CollectiveRules, OneRankIsTheIdentityWithoutACommunicator) {
  const auto executable = compile(*one_all_reduce(1), Device::reference());
  executable->bind(std::make_shared<Variables>(Device::reference()));
  EXPECT_TRUE(executable->run({{"x", numbers_of(2)}}).at("y").identical(numbers_of(2)));
}

TEST(CollectiveRules, SeveralRanksNeedACommunicatorOfAsMany) {
  const auto graph = one_all_reduce(3);
  const Tensor x = numbers_of(0);
  EXPECT_ERROR(run_reference(*graph, {&x, 1}), ErrorCode::unsupported, "all_reduce",
               "needs the other 2 of 3 ranks", "CompileOptions::communicators");
  EXPECT_ERROR(compile(*graph, Device::reference()), ErrorCode::unsupported, "has no kernel for",
               "the group '' of 3 ranks has no communicator");
  // What only plans needs nobody.
  EXPECT_EQ(compile(*graph, Device::null())->nodes().front().kernel, "communicator");
  CompileOptions options;
  options.communicators[""] = distribute::thread_group(2).front();
  EXPECT_ERROR(compile(*graph, Device::reference(), options), ErrorCode::invalid_argument, "all_reduce",
               "is of 3 ranks, the communicator of its group '' has 2");
}

TEST(CollectiveRules, AConstantIsNotFolded) {
  std::vector<double> sums(2);
  on_ranks(2, [&](const std::shared_ptr<Communicator>& communicator) {
    Graph graph;
    Value* two = ops::constant(graph, Tensor::scalar(DataType::fp32, 2));
    graph.add_output("y", ops::all_reduce(two, {.ranks = 2}));
    CompileOptions options;
    options.communicators[""] = communicator;
    const auto executable = compile(graph, Device::reference(), options);
    executable->bind(std::make_shared<Variables>(Device::reference()));
    sums[static_cast<size_t>(communicator->rank())] = executable->run({}).at("y").at(0);
  });
  EXPECT_EQ(sums, (std::vector<double>{4, 4}));
}

TEST(CollectiveRules, WhatDoesNotFitIsRefused) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {6}});
  Value* counts = graph.add_input(InputRole::input, "counts", {DataType::int32, {6}});
  Value* scalar = graph.add_input(InputRole::input, "scalar", {DataType::fp32, {}});
  const auto code = ErrorCode::invalid_graph;
  EXPECT_ERROR(ops::all_reduce(x, {.ranks = 0}), code, "there must be a rank, got 0");
  EXPECT_ERROR(ops::all_reduce(x, {.ranks = 2}, "product"), code, "must be one of sum, mean", "'product'");
  EXPECT_ERROR(ops::all_reduce(counts, {.ranks = 2}, "mean"), code, "a mean is of floating types alone");
  EXPECT_ERROR(ops::reduce_scatter(x, {.ranks = 4}), code, "6 rows cannot be shared evenly among 4 ranks");
  EXPECT_ERROR(ops::reduce_scatter(x, {.ranks = 2}, "maximum"), code, "must be one of sum, mean");
  EXPECT_ERROR(ops::all_gather(scalar, {.ranks = 2}), code, "an input needs an axis");
  EXPECT_ERROR(ops::broadcast(x, {.ranks = 2}, 2), code, "the root must be one of 2 ranks, got 2");
  EXPECT_ERROR(ops::reduce(x, {.ranks = 2}, -1), code, "the root must be one of 2 ranks, got -1");
}

}  // namespace
}  // namespace tessera::testing
