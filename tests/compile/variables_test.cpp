// What lives on the device: constants, on which work is done once, and states that need not be given.
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/graph/graph.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

Tensor pair(float a, float b) {
  return Tensor::from<float>({2}, {a, b});
}

std::shared_ptr<Variables> variables_with(const std::map<std::string, Tensor>& values) {
  auto variables = std::make_shared<Variables>(Device::reference());
  for (const auto& [name, value] : values) variables->set(name, value);
  return variables;
}

std::unique_ptr<Executable> compile_text(const std::string& text) {
  CompileOptions options;
  options.passes.fuse = false;
  return compile(*parse_graph(text), Device::reference(), options);
}

// A training graph: %w changes with every run.
constexpr const char* kTraining = R"(graph g(input %x: fp32[2], constant %c: fp32[2], parameter %w: fp32[2]) {
  %scale = exp(%c)
  %decayed = exp(%w)
  %y = multiply(%x, %scale)
  %next = add(%w, %scale)
  output y = %y
  output decayed = %decayed
  update %w = %next
})";

TEST(Constants, AreWorkedOnOnceInATrainingGraph) {
  const auto executable = compile_text(kTraining);
  for (const NodeReport& node : executable->nodes()) EXPECT_EQ(node.once, node.name == "scale") << node.name;
  const auto variables = variables_with({{"c", pair(0, 0)}, {"w", pair(5, 6)}});
  executable->bind(variables);
  EXPECT_EQ(executable->run({{"x", pair(3, 4)}}).at("y").to_doubles(), (std::vector<double>{3, 4}));
  EXPECT_EQ(variables->get("w").to_doubles(), (std::vector<double>{6, 7}));
  EXPECT_EQ(variables->get("c").to_doubles(), (std::vector<double>{0, 0}));
}

TEST(Constants, MustBeGivenAsParametersMust) {
  const auto executable = compile_text(kTraining);
  EXPECT_ERROR(executable->bind(variables_with({{"w", pair(5, 6)}})), ErrorCode::invalid_argument, "'c'");
  EXPECT_ERROR(executable->run({{"x", pair(3, 4)}, {"c", pair(3, 4)}}), ErrorCode::invalid_argument, "bind");
}

// What is made of them is all that runs need.
TEST(Constants, LeaveTheDeviceOnceTheyAreWorkedOn) {
  const auto executable = compile_text(kTraining);
  EXPECT_EQ(executable->memory_plan().settled_variable_bytes, 8);
  executable->load([](const std::string& name) { return name == "c" ? pair(0, 0) : pair(5, 6); });
  EXPECT_EQ(executable->run({{"x", pair(3, 4)}}).at("y").to_doubles(), (std::vector<double>{3, 4}));
}

constexpr const char* kCounting =
    R"(graph g(input %x: fp32[2], parameter %w: fp32[2], state %calls: fp32[2] = (1, 2)) {
  %y = multiply(%x, %w)
  %next = add(%calls, %y)
  output calls = %calls
  update %calls = %next
})";

TEST(InitialValues, AreCreatedWhereTheVariablesLackThem) {
  const auto executable = compile_text(kCounting);
  const auto variables = variables_with({{"w", pair(1, 1)}});
  executable->bind(variables);
  EXPECT_EQ(variables->get("calls").to_doubles(), (std::vector<double>{1, 2}));
  executable->run({{"x", pair(10, 10)}});
  EXPECT_EQ(variables->get("calls").to_doubles(), (std::vector<double>{11, 12}));
  executable->bind(variables);  // it is there now
  EXPECT_EQ(executable->run({{"x", pair(0, 0)}}).at("calls").to_doubles(), (std::vector<double>{11, 12}));
  // The graph's own tensor stays as it was.
  const auto others = variables_with({{"w", pair(1, 1)}});
  executable->bind(others);
  EXPECT_EQ(others->get("calls").to_doubles(), (std::vector<double>{1, 2}));
}

TEST(InitialValues, AreNotCreatedWhenBindingFails) {
  const auto executable = compile_text(kCounting);
  const auto variables = variables_with({});
  EXPECT_ERROR(executable->bind(variables), ErrorCode::invalid_argument, "'w'");
  EXPECT_FALSE(variables->contains("calls"));
  const auto wrong = variables_with({{"w", pair(1, 1)}, {"calls", Tensor(DataType::fp32, {3})}});
  EXPECT_ERROR(executable->bind(wrong), ErrorCode::invalid_argument, "'calls'", "[3]");
}

TEST(InitialValues, StandForWhatASourceLacks) {
  const auto executable = compile_text(kCounting);
  const auto only = [](const std::string& known) {
    return
        [known](const std::string& name) { return name == known ? std::optional(pair(1, 1)) : std::nullopt; };
  };
  executable->load(only("w"));
  EXPECT_EQ(executable->run({{"x", pair(0, 0)}}).at("calls").to_doubles(), (std::vector<double>{1, 2}));
  EXPECT_ERROR(executable->load(only("calls")), ErrorCode::invalid_argument, "no variable 'w'");
  executable->load([](const std::string&) { return pair(7, 8); });
  EXPECT_EQ(executable->run({{"x", pair(0, 0)}}).at("calls").to_doubles(), (std::vector<double>{7, 8}));
}

}  // namespace
}  // namespace tessera::testing
