// Whole compilations on the reference and null devices: binding, updates, aliases, plans, errors.
#include "tessera/compile/executable.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"
#include "tessera/graph/graph.h"
#include "tessera/models/registry.h"
#include "tessera/ops/functions.h"

#include "support/expect_error.h"
#include "support/planning_device.h"
#include "support/training_step.h"

namespace tessera {
namespace {

std::shared_ptr<Variables> variables_with(std::map<std::string, Tensor> values) {
  auto variables = std::make_shared<Variables>(Device::reference());
  for (const auto& [name, value] : values) variables->set(name, value);
  return variables;
}

std::unique_ptr<Executable> compile_text(const char* text, const CompileOptions& options = {}) {
  return compile(*parse_graph(text), Device::reference(), options);
}

TEST(Executable, RunsInputsToOutputs) {
  const auto executable = compile_text(R"(graph g(input %x: fp32[2, 2], parameter %w: fp32[2]) {
  %y = multiply(%x, %w)
  %z = reshape(%y) {shape = [4]}
  output z = %z
  output x = %x
})");
  executable->bind(variables_with({{"w", Tensor::from<float>({2}, {2, 3})}}));
  const auto outputs = executable->run({{"x", Tensor::from<float>({2, 2}, {1, 2, 3, 4})}});
  EXPECT_EQ(outputs.at("z").to_doubles(), (std::vector<double>{2, 6, 6, 12}));
  EXPECT_EQ(outputs.at("x").to_doubles(), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Executable, UpdatesAppearAfterTheRunOnly) {
  // `old` reads the state after the node that makes its new value: both must see the value of before.
  const auto executable = compile_text(R"(graph g(input %x: fp32[2], state %s: fp32[2]) {
  %next = add(%s, %x)
  %old = multiply(%s, %x)
  output old = %old
  update %s = %next
})");
  auto variables = variables_with({{"s", Tensor::from<float>({2}, {1, 2})}});
  executable->bind(variables);
  const Tensor x = Tensor::from<float>({2}, {10, 20});
  EXPECT_EQ(executable->run({{"x", x}}).at("old").to_doubles(), (std::vector<double>{10, 40}));
  EXPECT_EQ(variables->get("s").to_doubles(), (std::vector<double>{11, 22}));
  EXPECT_EQ(executable->run({{"x", x}}).at("old").to_doubles(), (std::vector<double>{110, 440}));
}

TEST(Executable, SwapsStates) {
  const auto executable = compile_text(R"(graph g(input %x: fp32[1], state %a: fp32[1], state %b: fp32[1]) {
  %sum = add(%a, %x)
  output sum = %sum
  update %a = %b
  update %b = %a
})");
  auto variables = variables_with(
      {{"a", Tensor::full(DataType::fp32, {1}, 1)}, {"b", Tensor::full(DataType::fp32, {1}, 2)}});
  executable->bind(variables);
  executable->run({{"x", Tensor(DataType::fp32, {1})}});
  EXPECT_EQ(variables->get("a").at(0), 2);
  EXPECT_EQ(variables->get("b").at(0), 1);
}

TEST(Executable, OneValueMayUpdateTwoStates) {
  const auto executable = compile_text(R"(graph g(input %x: fp32[1], state %a: fp32[1], state %b: fp32[1]) {
  %sum = add(%a, %x)
  update %a = %sum
  update %b = %sum
})");
  auto variables = variables_with(
      {{"a", Tensor::full(DataType::fp32, {1}, 1)}, {"b", Tensor::full(DataType::fp32, {1}, 2)}});
  executable->bind(variables);
  executable->run({{"x", Tensor::full(DataType::fp32, {1}, 4)}});
  EXPECT_EQ(variables->get("a").at(0), 5);
  EXPECT_EQ(variables->get("b").at(0), 5);
}

TEST(Executable, FrozenWorkHappensAtBindingAndAgainWhenBoundAnew) {
  CompileOptions options;
  options.passes.frozen = true;
  const auto executable = compile_text(R"(graph g(input %x: fp32[2], parameter %w: fp32[2]) {
  %scaled = exp(%w)
  %y = multiply(%x, %scaled)
  output y = %y
})",
                                       options);
  auto variables = variables_with({{"w", Tensor(DataType::fp32, {2})}});
  executable->bind(variables);
  const Tensor x = Tensor::from<float>({2}, {3, 4});
  EXPECT_EQ(executable->run({{"x", x}}).at("y").to_doubles(), (std::vector<double>{3, 4}));
  variables->set("w", Tensor::full(DataType::fp32, {2}, std::log(2.0)));
  executable->bind(variables);
  // exp of ln 2, rounded to fp32, times a number: a few units in the last place of 8.
  EXPECT_NEAR(executable->run({{"x", x}}).at("y").at(1), 8, 4e-6);
}

TEST(Executable, SaysWhatIsMissingOrWrong) {
  const auto executable = compile_text(
      "graph g(input %x: fp32[2], parameter %w: fp32[2]) {\n  %y = add(%x, %w)\n  output y = %y\n}");
  EXPECT_ERROR(executable->run({}), ErrorCode::invalid_argument, "bind");
  EXPECT_ERROR(executable->bind(variables_with({{"ww", Tensor(DataType::fp32, {2})}})),
               ErrorCode::invalid_argument, "'w'", "did you mean 'ww'");
  EXPECT_ERROR(executable->bind(variables_with({{"w", Tensor(DataType::fp32, {3})}})),
               ErrorCode::invalid_argument, "'w'", "[3]");
  executable->bind(variables_with({{"w", Tensor(DataType::fp32, {2})}}));
  EXPECT_ERROR(executable->run({}), ErrorCode::invalid_argument, "'x'", "missing");
  EXPECT_ERROR(executable->run({{"x", Tensor(DataType::fp64, {2})}}), ErrorCode::invalid_argument, "'x'",
               "fp64");
  const auto symbolic = parse_graph("graph g(input %x: fp32[n]) {\n  output x = %x\n}");
  EXPECT_ERROR(compile(*symbolic, Device::reference()), ErrorCode::invalid_argument, "n", "specialize");
  EXPECT_ERROR(Device::open("cpy"), ErrorCode::invalid_argument, "did you mean 'cpu'");
}

std::unique_ptr<Executable> sum_of_two_inputs() {
  auto executable = compile_text(
      "graph g(input %x: fp32[2], input %y: fp32[2]) {\n  %sum = add(%x, %y)\n  output sum = %sum\n}");
  executable->bind(variables_with({}));
  return executable;
}

TEST(Executable, StagedInputsServeUntilTheyAreGivenAnew) {
  const auto executable = sum_of_two_inputs();
  executable->stage({{"x", Tensor::from<float>({2}, {1, 2})}});
  const Tensor y = Tensor::from<float>({2}, {10, 20});
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(executable->run({{"y", y}}).at("sum").to_doubles(), (std::vector<double>{11, 22}));
  executable->stage({{"x", Tensor::from<float>({2}, {3, 4})}});
  EXPECT_EQ(executable->run({{"y", y}}).at("sum").to_doubles(), (std::vector<double>{13, 24}));
  EXPECT_EQ(executable->run({{"x", y}, {"y", y}}).at("sum").to_doubles(), (std::vector<double>{20, 40}));
  EXPECT_ERROR(executable->run({{"y", y}}), ErrorCode::invalid_argument, "'x'", "missing");
}

TEST(Executable, WhatIsRefusedLeavesTheStagedInputs) {
  const auto executable = sum_of_two_inputs();
  executable->stage({{"x", Tensor::from<float>({2}, {1, 2})}, {"y", Tensor::from<float>({2}, {10, 20})}});
  const Tensor other = Tensor::from<float>({2}, {5, 6});
  const Tensor wrong(DataType::fp32, {3});
  EXPECT_ERROR(executable->stage({{"x", wrong}}), ErrorCode::invalid_argument, "'x'", "[3]");
  EXPECT_ERROR(executable->stage({{"x", other}, {"y", wrong}}), ErrorCode::invalid_argument, "'y'", "[3]");
  EXPECT_ERROR(executable->stage({{"x", other}, {"z", other}}), ErrorCode::invalid_argument, "'z'");
  EXPECT_ERROR(executable->run({{"x", other}, {"y", wrong}}), ErrorCode::invalid_argument, "'y'", "[3]");
  EXPECT_EQ(executable->run({}).at("sum").to_doubles(), (std::vector<double>{11, 22}));
}

TEST(Executable, FindsTheNodeThatMadeTheFirstNaN) {
  CompileOptions options;
  options.check_finite = true;
  const auto executable = compile_text(
      "graph g(input %x: fp32[2]) {\n  %bad = log(%x)\n  %y = exp(%bad)\n  output y = %y\n}", options);
  executable->bind(variables_with({}));
  executable->run({{"x", Tensor::from<float>({2}, {1, 2})}});
  EXPECT_ERROR(executable->run({{"x", Tensor::from<float>({2}, {1, -2})}}), ErrorCode::not_finite, "'bad'",
               "element 1");
}

// Has so much memory left, and says so or does not.
class ScarceDevice : public HostMemoryDevice {
 public:
  ScarceDevice(int64_t bytes, bool says_so) : bytes_(bytes), says_so_(says_so) {}
  DeviceDescription description() const override {
    return {.name = "scarce", .memory_bytes = int64_t{1} << 30, .versions = {}};
  }
  std::vector<KernelCandidate> candidates(const Node&) const override { return {reference_candidate()}; }
  std::optional<int64_t> free_bytes() const override {
    return says_so_ ? std::optional(bytes_) : std::nullopt;
  }
  std::shared_ptr<void> allocate(int64_t bytes) override {
    require(bytes <= bytes_, ErrorCode::out_of_memory, "scarce memory");
    return HostMemoryDevice::allocate(bytes);
  }

 private:
  int64_t bytes_;
  bool says_so_;
};

TEST(Executable, SaysWhatItNeedsWhenItsMemoryIsNotFree) {
  for (const bool says_so : {true, false}) {
    const auto device = std::make_shared<ScarceDevice>(10'000, says_so);
    const auto executable = compile(
        *parse_graph("graph g(input %x: fp32[50, 100]) {\n  %roots = sqrt(%x)\n  output y = %roots\n}"),
        device);
    EXPECT_ERROR(executable->bind(std::make_shared<Variables>(device)), ErrorCode::out_of_memory, "'g'",
                 "19.6 KiB", says_so ? "9.8 KiB free of 1.0 GiB" : "scarce memory", "roots fp32[50, 100]",
                 "smaller batch");
  }
}

// The training step of a real network, planned without running it.
// Each tensor alone could be; the sum of all would wrap around.
TEST(Executable, RefusesGraphsWhoseBytesNoPlanCounts) {
  const auto chain = [](int nodes) {
    Graph graph("wide");
    Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {kMaximumTensorBytes / 4}});
    for (int i = 0; i < nodes; ++i) x = ops::relu(x);
    graph.add_output("y", x);
    return compile(graph, Device::null())->memory_plan().peak_bytes;
  };
  EXPECT_GE(chain(4), kMaximumTensorBytes);
  EXPECT_ERROR(chain(600), ErrorCode::out_of_memory, "'wide'", "64 PiB");
}

TEST(MemoryPlanOfNetworks, ResNet50TrainingIsWithinATenthOfTheBound) {
  const models::Model model = models::create("resnet50");
  const auto step = testing::training_step(model, {.batch = 32});
  const auto executable = compile(*step.graph, Device::null());
  const MemoryPlan& plan = executable->memory_plan();
  EXPECT_LE(static_cast<double>(plan.peak_bytes), 1.10 * static_cast<double>(plan.lower_bound_bytes));
  // No activation is transposed on the way (decision 8 of the design).
  for (const auto& node : executable->graph().nodes()) EXPECT_NE(node->operator_name(), "transpose");
  EXPECT_ERROR(executable->bind(std::make_shared<Variables>(Device::null())), ErrorCode::unsupported,
               "plans");
}

TEST(MemoryPlanOfNetworks, RecomputedActivationsAreNotKeptThroughResNet50) {
  const models::Model model = models::create("resnet50");
  const auto step = testing::training_step(model, {.batch = 32});
  const auto plan = [&](std::optional<bool> recompute, int64_t limit = std::numeric_limits<int64_t>::max()) {
    CompileOptions options;
    options.passes.recompute = recompute;
    PassTarget target = Device::null()->pass_target({});
    target.recompute_limit_bytes = limit;
    return compile(*step.graph, std::make_shared<testing::PlanningDevice>(target), options);
  };
  const auto count = [](const Executable& executable) {
    return std::count_if(executable.nodes().begin(), executable.nodes().end(), [](const NodeReport& node) {
      return node.name.find(".recomputed/") != std::string::npos;
    });
  };
  // 2.62 GB and 2.21 GB
  EXPECT_GT(plan(false)->memory_plan().peak_bytes, 2'550'000'000);
  const auto executable = plan(true);
  EXPECT_LT(executable->memory_plan().peak_bytes, 2'250'000'000);
  EXPECT_EQ(plan(std::nullopt)->memory_plan().peak_bytes, executable->memory_plan().peak_bytes);
  EXPECT_LE(static_cast<double>(executable->memory_plan().peak_bytes),
            1.10 * static_cast<double>(executable->memory_plan().lower_bound_bytes));
  // Each runs right before the weight gradient that reads it; where the weight is larger than what its
  // gradient frees, one that frees more may come between.
  const auto& nodes = executable->nodes();
  int recomputed = 0;
  for (size_t i = 0; i + 2 < nodes.size(); ++i) {
    if (nodes[i].name.find(".recomputed/") == std::string::npos) continue;
    ++recomputed;
    EXPECT_EQ(nodes[i].operator_name, "fused:batch_norm_inference");
    const size_t reader = nodes[i + 1].operator_name == "fused:batch_norm_gradient" ? i + 2 : i + 1;
    EXPECT_EQ(nodes[reader].operator_name, "convolution_weight_gradient") << nodes[i].name;
  }
  EXPECT_EQ(recomputed, 2 * 16);  // two of three in each bottleneck
  // The device's limit leaves out the six of layer 1 and the first of layers 2 and 3; the caller's word
  // overrides it.
  constexpr int64_t kLimit = int64_t{16} << 20;
  EXPECT_EQ(count(*plan(std::nullopt, kLimit)), 2 * 16 - 8);
  EXPECT_LT(plan(std::nullopt, kLimit)->memory_plan().peak_bytes, 2'450'000'000);
  EXPECT_EQ(count(*plan(true, kLimit)), 2 * 16);
  EXPECT_EQ(count(*plan(std::nullopt, 0)), 0);
}

// Freed memory filled with NaN, and memory never shared, must give the bits of the plan.
TEST(MemoryPlanOfNetworks, PoisonedAndUnplannedStepsAgreeBitForBit) {
  const models::Model model = models::create("lenet");
  const auto step = testing::training_step(model, {.batch = 2, .optimizer = optim::adamw()});
  const auto run = [&](bool plan, bool poison) {
    CompileOptions options;
    options.plan_memory = plan;
    options.poison_freed = poison;
    const auto executable = compile(*step.graph, Device::reference(), options);
    auto variables = std::make_shared<Variables>(Device::reference());
    for (const nn::Variable& variable : step.variables) {
      variables->set(variable.name, nn::initialize(variable.initializer, variable.name, variable.shape, 1));
    }
    executable->bind(variables);
    std::map<std::string, Tensor> inputs{{"images", Tensor::full(DataType::fp32, {2, 28, 28, 1}, 0.5)},
                                         {"labels", Tensor::from<int32_t>({2}, {3, 7})},
                                         {"learning_rate", Tensor::scalar(DataType::fp32, 0.01)}};
    executable->run(inputs);
    return variables->get("conv1.weight");
  };
  const Tensor expected = run(true, false);
  EXPECT_TRUE(run(true, true).identical(expected));
  EXPECT_TRUE(run(false, false).identical(expected));
}

}  // namespace
}  // namespace tessera
