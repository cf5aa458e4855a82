// Several executables on one device: from several threads, over the same variables, in the same workspace.
#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"

#include "support/detached_device.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

// A layer, a norm and a loss with their gradients' kinds of work, and two updates.
constexpr const char* kStep =
    R"(graph step(input %x: fp32[64, 48], parameter %w: fp32[48, 40], state %mean: fp32[40]) {
  %h = matmul(%x, %w)
  %y = gelu(%h)
  %p = softmax(%y) {axis = 1}
  %m = reduce_mean(%p) {axes = [0]}
  %next_mean = add(%mean, %m)
  %xt = transpose(%x) {permutation = [1, 0]}
  %g = matmul(%xt, %p)
  %next = subtract(%w, %g)
  %loss = reduce_sum(%m) {axes = [0]}
  output loss = %loss
  output p = %p
  update %w = %next
  update %mean = %next_mean
})";

struct Results {
  std::vector<Tensor> values;
  bool operator==(const Results& other) const {
    return std::equal(values.begin(), values.end(), other.values.begin(), other.values.end(),
                      [](const Tensor& a, const Tensor& b) { return a.identical(b); });
  }
};

// Compiles, and runs some steps on inputs of the seed.
Results train(const std::shared_ptr<Device>& device, uint64_t seed) {
  const auto variables = std::make_shared<Variables>(device);
  variables->set("w", random_tensor(DataType::fp32, {48, 40}, -1, 1, seed));
  variables->set("mean", Tensor(DataType::fp32, {40}));
  const auto executable = compile(*parse_graph(kStep), device);
  executable->bind(variables);
  Results results;
  for (uint64_t step = 0; step < 6; ++step) {
    auto outputs =
        executable->run({{"x", random_tensor(DataType::fp32, {64, 48}, -1, 1, 100 * seed + step)}});
    results.values.push_back(outputs.at("loss"));
    results.values.push_back(outputs.at("p"));
  }
  results.values.push_back(variables->get("w"));
  results.values.push_back(variables->get("mean"));
  return results;
}

class Threads : public ::testing::TestWithParam<const char*> {};

TEST_P(Threads, WithExecutablesOfTheirOwnGetTheBitsOfOneAfterTheOther) {
  constexpr uint64_t kThreads = 3;
  const std::shared_ptr<Device> device = Device::open(GetParam());
  std::vector<Results> expected(kThreads);
  // In threads too: how many OpenMP takes may be another number in this one.
  for (uint64_t i = 0; i < kThreads; ++i) std::thread([&] { expected[i] = train(device, i); }).join();
  std::vector<Results> actual(kThreads);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { actual[i] = train(device, i); });
  for (std::thread& thread : threads) thread.join();
  for (uint64_t i = 0; i < kThreads; ++i) EXPECT_EQ(actual[i], expected[i]) << "thread " << i;
}

// As a server does: each thread has its executable, all have the same weights.
TEST_P(Threads, ReadTheSameVariables) {
  constexpr uint64_t kThreads = 3;
  const std::shared_ptr<Device> device = Device::open(GetParam());
  const auto graph = parse_graph(R"(graph g(input %x: fp32[8, 48], parameter %w: fp32[48, 40]) {
  %e = exp(%w)
  %y = matmul(%x, %e)
  output y = %y
})");
  const auto variables = std::make_shared<Variables>(device);
  variables->set("w", random_tensor(DataType::fp32, {48, 40}, -1, 1, 1));
  const Tensor x = random_tensor(DataType::fp32, {8, 48}, -1, 1, 2);
  const auto serve = [&] {
    CompileOptions options;
    options.passes.frozen = true;
    const auto executable = compile(*graph, device, options);
    executable->bind(variables);
    for (int run = 0; run < 5; ++run) executable->run({{"x", x}});
    return executable->run({{"x", x}}).at("y");
  };
  Tensor expected;
  std::thread([&] { expected = serve(); }).join();
  std::vector<Tensor> actual(kThreads);
  std::vector<std::thread> threads;
  for (Tensor& one : actual) threads.emplace_back([&] { one = serve(); });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& one : actual) EXPECT_TRUE(one.identical(expected));
}

INSTANTIATE_TEST_SUITE_P(Queues, Threads, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return test.param; });

constexpr const char* kUpdating = R"(graph up(input %x: fp32[2], state %sum: fp32[2]) {
  %next = add(%sum, %x)
  update %sum = %next
})";
constexpr const char* kReading = R"(graph read(input %x: fp32[2], state %sum: fp32[2]) {
  %y = multiply(%sum, %x)
  output y = %y
})";

struct Pair {
  Pair(const std::shared_ptr<Device>& device, const char* first_text, const CompileOptions& options)
      : variables(std::make_shared<Variables>(device)),
        first(compile(*parse_graph(first_text), device, options)),
        second(compile(*parse_graph(kReading), device, options)) {
    variables->set("sum", Tensor(DataType::fp32, {2}));
    for (const auto& executable : {first.get(), second.get()}) {
      executable->bind(variables);
      executable->stage({{"x", Tensor::from<float>({2}, {1, 2})}});
    }
  }
  std::shared_ptr<Variables> variables;
  std::unique_ptr<Executable> first;
  std::unique_ptr<Executable> second;
};

TEST(Queues, OrderRunsOverVariablesThatOneUpdates) {
  const auto device = std::make_shared<DetachedDevice>();
  const Pair pair(device, kUpdating, {});
  EXPECT_EQ(device->events, 1);  // what is done once, when the second was bound, after the first one's runs
  pair.first->submit({});
  EXPECT_EQ(device->events, 2);  // an update after what may still read
  pair.second->submit({});
  EXPECT_EQ(device->events, 3);  // a reader after the update
  pair.second->receive();
}

TEST(Queues, NeedNoOrderWhereNothingIsUpdated) {
  const auto device = std::make_shared<DetachedDevice>();
  const Pair pair(device, kReading, {});
  pair.first->run({});
  pair.second->run({});
  EXPECT_EQ(device->events, 0);
}

TEST(Queues, NeedNoOrderInOneWorkspace) {
  const auto device = std::make_shared<DetachedDevice>();
  CompileOptions options;
  options.workspace = std::make_shared<Workspace>(device);
  const Pair pair(device, kUpdating, options);
  pair.first->run({});
  EXPECT_EQ(pair.second->run({}).at("y").to_doubles(), (std::vector<double>{1, 4}));
  EXPECT_EQ(device->events, 0);
}

// What a variable holds is asked of those that use it, and of no other.
TEST(Queues, AreWaitedForWhereTheirVariablesAreRead) {
  const auto device = std::make_shared<DetachedDevice>();
  const Pair pair(device, kUpdating, {});
  const Variables others(device);
  pair.first->run({});
  const int waits = device->waits;
  EXPECT_EQ(others.names().size(), 0U);
  EXPECT_EQ(device->waits, waits);
  pair.variables->get("sum");
  EXPECT_EQ(device->waits, waits + 2);
}

}  // namespace
}  // namespace tessera::testing
