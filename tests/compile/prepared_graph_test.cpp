// What executables give of themselves to be kept: Executable::prepared().
#include <gtest/gtest.h>

#include "tessera/compile/executable.h"

#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

// Passes fuse it, fold what is made of its parameters, and a view of one is read at each run.
constexpr const char* kText =
    R"(graph g(input %x: fp32[6, 32], parameter %w: fp32[32, 64], parameter %scale: fp32[64],
    parameter %rows: fp32[2, 3], state %offset: fp32[64], state %factor: fp32[] = 0.5) {
  %scaled = multiply(%w, %scale)
  %product = matmul(%x, %scaled)
  %scaled_product = multiply(%product, %factor)
  %shifted = add(%scaled_product, %offset)
  %positive = relu(%shifted)
  %column = reshape(%rows) {shape = [6, 1]}
  %y = multiply(%positive, %column)
  output y = %y
  output scale = %scale
})";

CompileOptions frozen() {
  CompileOptions options;
  options.passes.frozen = true;
  return options;
}

CompileOptions again(const PreparedGraph& prepared) {
  CompileOptions options = frozen();
  options.kernels = prepared.kernels;
  return options;
}

std::optional<Tensor> value_of(const std::string& name) {
  if (name == "w") return random_tensor(DataType::fp32, {32, 64}, -1, 1, 1);
  if (name == "scale") return random_tensor(DataType::fp32, {64}, 1, 2, 2);
  if (name == "offset") return random_tensor(DataType::fp32, {64}, -1, 1, 5);
  if (name == "factor") return std::nullopt;  // what it starts with
  return random_tensor(DataType::fp32, {2, 3}, -1, 1, 3);
}

std::map<std::string, Tensor> inputs() {
  return {{"x", random_tensor(DataType::fp32, {6, 32}, -1, 1, 4)}};
}

class PreparedGraphOn : public ::testing::TestWithParam<std::string> {
 protected:
  const std::shared_ptr<Device> device_ = Device::open(GetParam());
};

TEST_P(PreparedGraphOn, GivesTheSameBitsWithoutPassesAndWorkOnConstants) {
  const auto executable = compile(*parse_graph(kText), device_, frozen());
  executable->load(value_of);
  const auto expected = executable->run(inputs());

  const PreparedGraph prepared = executable->prepared();
  const auto text = print(*prepared.graph);
  const auto other = compile(*parse_graph(text), device_, again(prepared));
  other->load([&](const std::string& name) { return prepared.constants.at(name); });
  EXPECT_TRUE(other->passes().empty());
  EXPECT_EQ(print(other->graph()), text);
  for (const NodeReport& node : other->nodes()) {
    EXPECT_FALSE(node.once) << node.name;
    EXPECT_LE(node.candidates.size(), 1) << node.name;
  }
  const auto outputs = other->run(inputs());
  EXPECT_TRUE(outputs.at("y").identical(expected.at("y")));
  EXPECT_TRUE(outputs.at("scale").identical(*value_of("scale")));
  EXPECT_EQ(other->prepared().kernels, prepared.kernels);
}

// Be it the first that does not refuse or another.
TEST_P(PreparedGraphOn, TakesTheKernelThatIsNamed) {
  const auto executable = compile(*parse_graph(kText), device_, frozen());
  executable->load(value_of);
  PreparedGraph prepared = executable->prepared();
  for (const NodeReport& node : executable->nodes()) {
    for (const CandidateReport& candidate : node.candidates) {
      if (!candidate.refused.empty() || !prepared.kernels.contains(node.name)) continue;
      prepared.kernels.at(node.name) = candidate.name;
      const auto other = compile(*prepared.graph, device_, again(prepared));
      for (const NodeReport& again : other->nodes()) {
        EXPECT_EQ(again.kernel, again.name == node.name ? candidate.name : again.kernel);
      }
    }
  }
}

TEST_P(PreparedGraphOn, NamesAKernelOfEachNode) {
  const auto executable = compile(*parse_graph(kText), device_, frozen());
  executable->load(value_of);
  PreparedGraph prepared = executable->prepared();
  ASSERT_FALSE(prepared.kernels.empty());
  const std::string node = prepared.kernels.begin()->first;
  prepared.kernels[node] = "loops.of_another_version";
  EXPECT_ERROR(compile(*prepared.graph, device_, again(prepared)), ErrorCode::unsupported,
               "loops.of_another_version", "no candidate has that name", node);
  prepared.kernels.erase(node);
  EXPECT_ERROR(compile(*prepared.graph, device_, again(prepared)), ErrorCode::invalid_argument,
               "no kernel is named", node);
}

INSTANTIATE_TEST_SUITE_P(Devices, PreparedGraphOn, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return info.param; });

TEST(PreparedGraphs, KeepWhatRunsOnceWhereNothingHasRun) {
  const auto executable = compile(*parse_graph(kText), Device::null(), frozen());
  const PreparedGraph prepared = executable->prepared();
  EXPECT_TRUE(prepared.constants.empty());
  EXPECT_EQ(print(*prepared.graph), print(executable->graph()));
  EXPECT_EQ(compile(*prepared.graph, Device::null(), again(prepared))->nodes().size(),
            executable->nodes().size());
}

TEST(PreparedGraphs, AreOfBoundInference) {
  const auto executable = compile(*parse_graph(kText), Device::reference(), frozen());
  EXPECT_ERROR(executable->prepared(), ErrorCode::invalid_argument, "bind() or load()");
  const auto counter = compile(*parse_graph(R"(graph counter(state %count: fp32[]) {
  %one: fp32[] = constant() {value = fp32[] (1)}
  %next = add(%count, %one)
  output next = %next
  update %count = %next
})"),
                               Device::reference());
  counter->load([](const std::string&) { return Tensor::scalar(DataType::fp32, 0); });
  EXPECT_ERROR(counter->prepared(), ErrorCode::unsupported, "its runs change 'count'");
}

}  // namespace
}  // namespace tessera::testing
