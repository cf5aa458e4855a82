// What executables make of the same variables once.
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/variable_check.h"

#include "support/counting_device.h"
#include "support/detached_device.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

constexpr int64_t kWeightBytes = 64 * 64 * 4;

// An inference graph: two derived weights, of which the second is made of the first.
std::unique_ptr<Executable> compile_rows(const std::shared_ptr<Device>& device, int64_t rows,
                                         const char* operation = "exp") {
  CompileOptions options;
  options.passes.frozen = true;
  options.passes.fuse = false;
  return compile(*parse_graph(fmt::format(R"(graph g(input %x: fp32[{0}, 64], parameter %w: fp32[64, 64]) {{
  %e = {1}(%w)
  %s = sqrt(%e)
  %a = matmul(%x, %e)
  %y = matmul(%a, %s)
  output y = %y
}})",
                                          rows, operation)),
                 device, options);
}

Tensor weights(uint64_t seed) {
  return random_tensor(DataType::fp32, {64, 64}, 0.1, 1, seed);
}

Tensor run(Executable& executable, int64_t rows) {
  return executable.run({{"x", random_tensor(DataType::fp32, {rows, 64}, -1, 1, 5)}}).at("y");
}

Tensor fresh(int64_t rows, uint64_t seed) {
  const auto device = Device::reference();
  const auto variables = std::make_shared<Variables>(device);
  variables->set("w", weights(seed));
  const auto executable = compile_rows(device, rows);
  executable->bind(variables);
  return run(*executable, rows);
}

struct Bound {
  Bound() { variables->set("w", weights(1)); }
  std::unique_ptr<Executable> bind(int64_t rows, const char* operation = "exp") const {
    auto executable = compile_rows(device, rows, operation);
    executable->bind(variables);
    return executable;
  }
  // Of derived weights alone.
  int64_t derived_bytes(std::initializer_list<const Executable*> executables) const {
    int64_t bytes = device->live_bytes() - kWeightBytes;
    for (const Executable* executable : executables) bytes -= executable->memory_plan().peak_bytes;
    return bytes;
  }
  std::shared_ptr<CountingDevice> device = std::make_shared<CountingDevice>();
  std::shared_ptr<Variables> variables = std::make_shared<Variables>(device);
};

TEST(DerivedValues, AreKeptOnceForExecutablesOverTheSameVariables) {
  const Bound bound;
  const auto four = bound.bind(4);
  const auto eight = bound.bind(8);
  const auto two = bound.bind(2);
  EXPECT_EQ(four->memory_plan().persistent_bytes, 2 * kWeightBytes);
  EXPECT_EQ(bound.derived_bytes({four.get(), eight.get(), two.get()}), 2 * kWeightBytes);
  EXPECT_TRUE(run(*four, 4).identical(fresh(4, 1)));
  EXPECT_TRUE(run(*eight, 8).identical(fresh(8, 1)));
  EXPECT_TRUE(run(*two, 2).identical(fresh(2, 1)));
}

TEST(DerivedValues, OfOtherWorkAreOthers) {
  const Bound bound;
  const auto one = bound.bind(4);
  const auto other = bound.bind(4, "tanh");
  EXPECT_EQ(bound.derived_bytes({one.get(), other.get()}), 4 * kWeightBytes);
}

TEST(DerivedValues, AreMadeAgainWhenVariablesHaveChanged) {
  const Bound bound;
  const auto four = bound.bind(4);
  const auto eight = bound.bind(8);
  bound.variables->set("w", weights(2));
  eight->bind(bound.variables);
  // What is bound already keeps what it was bound to.
  EXPECT_TRUE(run(*four, 4).identical(fresh(4, 1)));
  EXPECT_TRUE(run(*eight, 8).identical(fresh(8, 2)));
  EXPECT_EQ(bound.derived_bytes({four.get(), eight.get()}), 4 * kWeightBytes);
  four->bind(bound.variables);
  EXPECT_TRUE(run(*four, 4).identical(fresh(4, 2)));
  EXPECT_EQ(bound.derived_bytes({four.get(), eight.get()}), 2 * kWeightBytes);
}

TEST(DerivedValues, AreMadeAgainWhenATrainingStepHasRun) {
  const Bound bound;
  const auto four = bound.bind(4);
  const auto step = compile(*parse_graph(R"(graph step(input %d: fp32[64, 64], parameter %w: fp32[64, 64]) {
  %next = add(%w, %d)
  update %w = %next
})"),
                            bound.device);
  step->bind(bound.variables);
  step->run({{"d", Tensor::full(DataType::fp32, {64, 64}, 0.25)}});
  const auto eight = bound.bind(8);
  EXPECT_FALSE(run(*eight, 8).identical(fresh(8, 1)));
  four->bind(bound.variables);
  const auto alone = std::make_shared<Variables>(bound.device);
  alone->set("w", bound.variables->get("w"));
  const auto expected = compile_rows(bound.device, 4);
  expected->bind(alone);
  EXPECT_TRUE(run(*four, 4).identical(run(*expected, 4)));
}

TEST(DerivedValues, GoWithTheLastExecutable) {
  const Bound bound;
  auto four = bound.bind(4);
  auto eight = bound.bind(8);
  four.reset();
  EXPECT_TRUE(run(*eight, 8).identical(fresh(8, 1)));
  eight.reset();
  EXPECT_EQ(bound.derived_bytes({}), 0);
}

TEST(DerivedValues, ThatOnlyOthersAreMadeOfDoNotStay) {
  const auto device = std::make_shared<CountingDevice>();
  const auto variables = std::make_shared<Variables>(device);
  variables->set("w", weights(1));
  const auto bind = [&](int64_t rows) {
    CompileOptions options;
    options.passes = {.frozen = true, .fuse = false};
    auto executable =
        compile(*parse_graph(fmt::format(R"(graph g(input %x: fp32[{}, 64], parameter %w: fp32[64, 64]) {{
  %e = exp(%w)
  %f = sqrt(%e)
  %y = matmul(%x, %f)
  output y = %y
}})",
                                         rows)),
                device, options);
    executable->bind(variables);
    return executable;
  };
  const auto four = bind(4);
  const auto eight = bind(8);
  EXPECT_EQ(four->memory_plan().persistent_bytes, kWeightBytes);
  ASSERT_EQ(four->memory_plan().derived.size(), 1U);
  EXPECT_EQ(four->memory_plan().derived[0].name, "f");
  const int64_t runs = four->memory_plan().peak_bytes + eight->memory_plan().peak_bytes;
  EXPECT_EQ(device->live_bytes() - kWeightBytes - runs, kWeightBytes);
  const Tensor before = run(*four, 4);
  variables->set("w", weights(2));
  four->bind(variables);
  EXPECT_FALSE(run(*four, 4).identical(before));
  variables->set("w", weights(1));
  four->bind(variables);
  EXPECT_TRUE(run(*four, 4).identical(before));
  // By itself it computes the same.
  const auto others = std::make_shared<Variables>(device);
  others->set("w", weights(1));
  eight->bind(others);
  const Tensor rows = run(*eight, 8);
  eight->bind(variables);
  EXPECT_TRUE(run(*eight, 8).identical(rows));
}

class Checks : public ::testing::TestWithParam<const char*> {
 protected:
  static std::shared_ptr<Device> device() {
    return std::string(GetParam()) == "detached" ? std::make_shared<DetachedDevice>()
                                                 : Device::open(GetParam());
  }
};

TEST_P(Checks, FindTheFirstVariableThatIsNotFinite) {
  const auto device = Checks::device();
  const auto variables = std::make_shared<Variables>(device);
  const std::vector<std::string> names{"scalar", "matrix", "half", "count", "empty", "double"};
  variables->set("scalar", Tensor::scalar(DataType::fp32, 3));
  variables->set("matrix", random_tensor(DataType::fp32, {37, 51}, -1e38, 1e38, 1));
  variables->set("half", random_tensor(DataType::fp16, {1001}, -1, 1, 2));
  variables->set("count", Tensor::full(DataType::int32, {4}, -1));
  variables->set("empty", Tensor(DataType::fp32, {0, 3}));
  variables->set("double", random_tensor(DataType::fp64, {7}, -1e300, 1e300, 3));
  VariableCheck check(variables, names, std::make_shared<Workspace>(device));
  EXPECT_EQ(check.first_not_finite(), std::nullopt);
  const auto expect_found = [&](const char* name, int64_t element, double value) {
    const Tensor sound = variables->get(name);
    Tensor broken = sound.clone();
    broken.set(element, value);
    variables->set(name, broken);
    EXPECT_EQ(check.first_not_finite(), name) << value;
    variables->set(name, sound);
    EXPECT_EQ(check.first_not_finite(), std::nullopt);
  };
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    expect_found("scalar", 0, value);
    expect_found("matrix", 37 * 51 - 1, value);
    expect_found("half", 500, value);
    expect_found("double", 0, value);
  }
  variables->set("double", Tensor::full(DataType::fp64, {7}, HUGE_VAL));
  variables->set("matrix", Tensor::full(DataType::fp32, {37, 51}, std::nan("")));
  EXPECT_EQ(check.first_not_finite(), "matrix");
}

INSTANTIATE_TEST_SUITE_P(Variables, Checks, ::testing::Values("reference", "cpu", "detached"),
                         [](const auto& test) { return test.param; });

// A network's parameters are hundreds of megabytes, and a checkpoint looks at them before it is written.
TEST(VariableChecks, CopyANumberOfEachVariableToTheHost) {
  const auto device = std::make_shared<DetachedDevice>();
  const auto variables = std::make_shared<Variables>(device);
  variables->set("weight", random_tensor(DataType::fp32, {1000, 100}, -1, 1, 1));
  variables->set("bias", random_tensor(DataType::fp32, {100}, -1, 1, 2));
  VariableCheck check(variables, {"weight", "bias"}, std::make_shared<Workspace>(device));
  const int64_t before = device->bytes_to_host;
  EXPECT_EQ(check.first_not_finite(), std::nullopt);
  EXPECT_EQ(device->bytes_to_host - before, static_cast<int64_t>(2 * size_of(DataType::fp32)));
}

TEST(VariableChecks, OfNoFloatingVariableFindNothing) {
  const auto device = Device::reference();
  const auto variables = std::make_shared<Variables>(device);
  variables->set("count", Tensor(DataType::int32, {4}));
  EXPECT_EQ(VariableCheck(variables, {"count"}, std::make_shared<Workspace>(device)).first_not_finite(),
            std::nullopt);
}

}  // namespace
}  // namespace tessera::testing
