// One network at several sizes.
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "tessera/compile/executable_family.h"

#include "support/counting_device.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

constexpr int64_t kWidth = 64;
constexpr int64_t kWeightBytes = kWidth * kWidth * 4;

// Of one weight and what is made of it once, beside values of 256 bytes a row.
std::unique_ptr<Graph> build(const SymbolBindings& sizes) {
  const int64_t rows = sizes.at("rows");
  require(rows != 13, ErrorCode::invalid_graph, "there is no network of {} rows", rows);
  return parse_graph(fmt::format(R"(graph g(input %x: fp32[{0}, 64], parameter %w: fp32[64, 64]) {{
  %e = exp(%w)
  %a = matmul(%x, %e)
  %b = softmax(%a) {{axis = 1}}
  %y = matmul(%b, %w)
  output y = %y
}})",
                                 rows));
}

SymbolBindings of(int64_t rows) {
  return {{"rows", rows}};
}
std::vector<SymbolBindings> sixteen_sizes() {
  std::vector<SymbolBindings> sizes;
  for (int64_t i = 1; i <= 16; ++i) sizes.push_back(of(8 * (7 * i % 17)));  // in no order
  return sizes;
}

CompileOptions frozen() {
  CompileOptions options;
  options.passes.frozen = true;
  return options;
}

std::shared_ptr<Variables> weights(const std::shared_ptr<Device>& device, uint64_t seed = 1) {
  auto variables = std::make_shared<Variables>(device);
  variables->set("w", random_tensor(DataType::fp32, {kWidth, kWidth}, -1, 1, seed));
  return variables;
}

Tensor run(Executable& executable, int64_t rows) {
  return executable.run({{"x", random_tensor(DataType::fp32, {rows, kWidth}, -1, 1, 5)}}).at("y");
}

// By an executable that shares nothing.
Tensor alone(const std::shared_ptr<Device>& device, int64_t rows, uint64_t seed = 1) {
  const auto executable = compile(*build(of(rows)), device, frozen());
  executable->bind(weights(device, seed));
  return run(*executable, rows);
}

TEST(Family, CompilesASizeOnceAndGivesUpTheOneThatWasNotWantedLongest) {
  const auto device = Device::reference();
  int built = 0;
  const auto count = [&](const SymbolBindings& sizes) {
    ++built;
    return build(sizes);
  };
  ExecutableFamily family(device, count, frozen(), 2);
  family.bind(weights(device));
  family.at(of(4));
  const std::shared_ptr<Executable> held = family.at(of(8));
  family.at(of(4));
  EXPECT_EQ(built, 2);
  family.at(of(16));
  EXPECT_EQ(family.sizes(), (std::vector{of(4), of(16)}));
  // Whoever holds it goes on.
  EXPECT_TRUE(run(*held, 8).identical(alone(device, 8)));
  EXPECT_TRUE(run(*family.at(of(4)), 4).identical(alone(device, 4)));
  EXPECT_EQ(built, 3);
  EXPECT_NE(family.at(of(8)), held);
  EXPECT_EQ(built, 4);
  EXPECT_EQ(family.sizes(), (std::vector{of(4), of(8)}));
}

TEST(Family, HoldsWhatItIsPreparedForAndNothingElse) {
  ExecutableFamily family(Device::reference(), build, frozen(), 2);
  family.at(of(2));
  const std::shared_ptr<Executable> known = family.at(of(8));
  family.prepare({of(4), of(8), of(16), of(4)});
  EXPECT_EQ(family.sizes(), (std::vector{of(8), of(4), of(16)}));
  EXPECT_EQ(family.at(of(8)), known);
  family.at(of(32));
  EXPECT_EQ(family.sizes(), (std::vector{of(16), of(8), of(32)}));
}

TEST(Family, SaysWhichSizeFailsAndAddsNone) {
  ExecutableFamily family(Device::reference(), build, frozen());
  family.bind(weights(Device::reference()));
  EXPECT_ERROR(family.at(of(13)), ErrorCode::invalid_graph, "13 rows");
  EXPECT_ERROR(family.prepare({of(4), of(13)}), ErrorCode::invalid_graph, "13 rows");
  EXPECT_TRUE(family.sizes().empty());
  family.prepare({of(4)});
  EXPECT_EQ(family.sizes(), std::vector{of(4)});
}

// 128 rows need an arena of two values of 256 bytes a row, all sixteen together eight and a half times that.
TEST(Family, OfSixteenSizesPlansOneArena) {
  const auto device = std::make_shared<CountingDevice>();
  ExecutableFamily family(device, build, frozen());
  family.bind(weights(device));
  family.prepare(sixteen_sizes());
  int64_t largest = 0;
  int64_t sum = 0;
  for (const SymbolBindings& sizes : family.sizes()) {
    const int64_t bytes = family.at(sizes)->memory_plan().peak_bytes;
    EXPECT_EQ(bytes, sizes.at("rows") * 2 * 256);
    largest = std::max(largest, bytes);
    sum += bytes;
  }
  EXPECT_EQ(largest, 64 << 10);
  const WorkspaceNeeds needs = needs_of(family.workspace().uses());
  EXPECT_EQ(needs.shared_bytes, largest);
  EXPECT_EQ(needs.alone_bytes, sum);
  EXPECT_EQ(sum, 544 << 10);
  EXPECT_EQ(family.workspace().bytes(), largest);
  // One weight, and what is made of it once for all of them.
  EXPECT_EQ(device->live_bytes(), largest + 2 * kWeightBytes);
  for (const SymbolBindings& sizes : sixteen_sizes()) {
    const int64_t rows = sizes.at("rows");
    EXPECT_TRUE(run(*family.at(sizes), rows).identical(alone(device, rows))) << rows;
  }
}

TEST(Family, MakesWhatItDerivedAnewWhenItIsBoundAgain) {
  const auto device = Device::reference();
  const auto variables = weights(device);
  ExecutableFamily family(device, build, frozen());
  family.bind(variables);
  family.prepare({of(4), of(8)});
  variables->set("w", weights(device, 2)->get("w"));
  family.bind(variables);
  EXPECT_TRUE(run(*family.at(of(8)), 8).identical(alone(device, 8, 2)));
  EXPECT_TRUE(run(*family.at(of(4)), 4).identical(alone(device, 4, 2)));
}

class Prepared : public ::testing::TestWithParam<const char*> {};

TEST_P(Prepared, ByThreadsGivesTheBitsOfOneAfterTheOther) {
  const std::shared_ptr<Device> device = Device::open(GetParam());
  ExecutableFamily family(device, build, frozen());
  family.bind(weights(device));
  family.prepare(sixteen_sizes());
  for (const SymbolBindings& sizes : sixteen_sizes()) {
    const int64_t rows = sizes.at("rows");
    EXPECT_TRUE(run(*family.at(sizes), rows).identical(alone(device, rows))) << rows;
  }
}

INSTANTIATE_TEST_SUITE_P(Family, Prepared, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return test.param; });

thread_local int settings = 0;

// Keeps with which settings its kernels were made.
class SettledDevice : public HostMemoryDevice {
 public:
  DeviceDescription description() const override { return {.name = "settled"}; }
  std::vector<KernelCandidate> candidates(const Node&) const override {
    const std::lock_guard lock(mutex_);
    seen_.insert(settings);
    return {reference_candidate()};
  }
  std::function<void()> settings_of_thread() const override {
    return [own = settings] { settings = own; };
  }
  std::set<int> seen() const { return seen_; }

 private:
  mutable std::mutex mutex_;
  mutable std::set<int> seen_;
};

TEST(Family, CompilesOnOtherThreadsAsOnItsOwn) {
  const auto device = std::make_shared<SettledDevice>();
  std::thread([&] {
    settings = 7;
    ExecutableFamily family(device, build, frozen());
    family.prepare(sixteen_sizes());
  }).join();
  EXPECT_EQ(device->seen(), std::set<int>{7});
}

}  // namespace
}  // namespace tessera::testing
