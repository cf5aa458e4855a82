// Executables with variables of their own: Executable::load().
#include <algorithm>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/graph/graph.h"

#include "support/counting_device.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

using testing::CountingDevice;

constexpr int64_t kElements = 1024;
constexpr int64_t kBytes = kElements * 4;

// Of its variables runs read `shift`, and what is made of the others once, in half the bytes.
constexpr const char* kText = R"(graph g(input %x: fp16[1024], parameter %first: fp32[1024],
    parameter %second: fp32[1024], parameter %third: fp32[1024], parameter %shift: fp16[1024], parameter %unread: fp32[1024]) {
  %a = cast(%first) {type = fp16}
  %b = cast(%second) {type = fp16}
  %sum = add(%second, %third)
  %c = cast(%sum) {type = fp16}
  %xa = multiply(%x, %a)
  %xab = multiply(%xa, %b)
  %xabc = add(%xab, %c)
  %y = add(%xabc, %shift)
  output y = %y
})";

Tensor value_of(const std::string& name) {
  static const std::map<std::string, double> kValues = {
      {"first", 2}, {"second", 3}, {"third", 4}, {"shift", 100}, {"unread", 1}};
  return Tensor::full(name == "shift" ? DataType::fp16 : DataType::fp32, {kElements}, kValues.at(name));
}

std::unique_ptr<Executable> compile_frozen(const std::shared_ptr<Device>& device) {
  CompileOptions options;
  options.passes.frozen = true;
  options.passes.fuse = false;
  return compile(*parse_graph(kText), device, options);
}

double result_of(Executable& executable) {
  const Tensor x = Tensor::full(DataType::fp16, {kElements}, 10);
  return executable.run({{"x", x}}).at("y").at(kElements - 1);
}

TEST(Load, AsksForEachVariableOnceWhenItIsFirstRead) {
  const auto executable = compile_frozen(Device::reference());
  std::vector<std::string> asked;
  executable->load([&](const std::string& name) {
    asked.push_back(name);
    return value_of(name);
  });
  EXPECT_EQ(asked, (std::vector<std::string>{"first", "second", "third", "shift"}));
  EXPECT_EQ(result_of(*executable), 10 * 2 * 3 + 3 + 4 + 100);
}

TEST(Load, KeepsOnlyWhatRunsRead) {
  const auto device = std::make_shared<CountingDevice>();
  const auto executable = compile_frozen(device);
  const MemoryPlan& plan = executable->memory_plan();
  EXPECT_EQ(plan.variable_bytes, kBytes / 2);
  EXPECT_EQ(plan.settled_variable_bytes, 4 * kBytes);
  executable->load(value_of);
  EXPECT_EQ(device->live_bytes(), plan.total_bytes());
  // While the sum of two is made, which goes again, the last of what is kept is not there yet.
  EXPECT_EQ(device->peak_bytes(), plan.total_bytes() - plan.variable_bytes + 3 * kBytes - kBytes / 2);
  EXPECT_EQ(result_of(*executable), 167);
}

TEST(Load, MakesWhatIsFrozenAnewEachTime) {
  const auto executable = compile_frozen(Device::reference());
  executable->load(value_of);
  executable->load(
      [](const std::string& name) { return name == "first" ? value_of("third") : value_of(name); });
  EXPECT_EQ(result_of(*executable), 10 * 4 * 3 + 3 + 4 + 100);
  auto variables = std::make_shared<Variables>(Device::reference());
  for (const char* name : {"first", "second", "third", "shift", "unread"})
    variables->set(name, value_of(name));
  executable->bind(variables);
  EXPECT_EQ(result_of(*executable), 167);
  EXPECT_EQ(variables->names().size(), 5u);
}

TEST(Load, BindsNothingWhenAVariableIsWrong) {
  const auto executable = compile_frozen(Device::reference());
  const auto wrong = [](const std::string& name) {
    return name == "third" ? Tensor(DataType::fp32, {3}) : value_of(name);
  };
  EXPECT_ERROR(executable->load(wrong), ErrorCode::invalid_argument, "'third'", "[3]", "fp32[1024]");
  EXPECT_ERROR(result_of(*executable), ErrorCode::invalid_argument, "load");
  const auto missing = [](const std::string& name) -> Tensor {
    fail(ErrorCode::invalid_file, "weights.safetensors: no '{}'", name);
  };
  EXPECT_ERROR(executable->load(missing), ErrorCode::invalid_file, "'first'");
  executable->load(value_of);
  EXPECT_EQ(result_of(*executable), 167);
}

TEST(Load, UpdatesItsOwnStates) {
  const auto executable = compile(*parse_graph(R"(graph g(input %x: fp32[2], state %s: fp32[2]) {
  %next = add(%s, %x)
  output next = %next
  update %s = %next
})"),
                                  Device::reference());
  executable->load([](const std::string&) { return Tensor::from<float>({2}, {1, 2}); });
  const Tensor x = Tensor::from<float>({2}, {10, 20});
  EXPECT_EQ(executable->run({{"x", x}}).at("next").to_doubles(), (std::vector<double>{11, 22}));
  EXPECT_EQ(executable->run({{"x", x}}).at("next").to_doubles(), (std::vector<double>{21, 42}));
}

}  // namespace
}  // namespace tessera
