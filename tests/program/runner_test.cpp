#include "program/program_test.h"
#include "support/expect_failure.h"

namespace tessera::program {
namespace {

using testing::expect_error;

using Values = std::vector<double>;

TensorType vector_type() {
  return {DataType::fp32, {Dimension::symbol("n")}};
}

Block block_of(std::vector<Declaration> inputs, const std::string& output,
               std::vector<Instruction> instructions) {
  Block block{.name = "main", .inputs = std::move(inputs)};
  block.outputs = {{output, "", {}}};
  block.instructions = std::move(instructions);
  return block;
}

TEST(Runner, AStaticNetworkIsOneIsland) {
  Block block = block_of({declare("x", vector_type())}, "z",
                         {instruction("add", {"x", "w"}, {"y"}), instruction("add", {"y", "x"}, {"z"})});
  block.constants["w"] = numbers({1, 2, 3});
  Runner runner(module_of(std::move(block)), reference_options());
  EXPECT_EQ(values_of(runner.run({{"x", numbers({1, 1, 1})}}), "z"), (Values{3, 4, 5}));
  ASSERT_EQ(runner.islands().size(), 1u);
  EXPECT_EQ(runner.islands()[0].nodes, 2u);  // a constant, and both sums as one
  EXPECT_EQ(runner.islands()[0].why, "the block ends");
}

TEST(Runner, InstantiateGivesTheGraphThatTrains) {
  Block block = block_of({declare("x", vector_type())}, "y", {instruction("add", {"x", "w"}, {"y"})});
  block.constants["w"] = numbers({1, 2});
  const Runner runner(module_of(std::move(block)), reference_options());
  const Instance instance = runner.instantiate({{"x", {DataType::fp32, {2}}}});
  verify(*instance.graph);
  ASSERT_EQ(instance.graph->inputs().size(), 2u);
  EXPECT_EQ(instance.graph->find_input("w")->role(), InputRole::parameter);
  EXPECT_EQ(instance.weights.at("w").to_doubles(), (Values{1, 2}));
  EXPECT_EQ(instance.graph->outputs()[0].name, "y");
}

TEST(Runner, InstantiateKeepsTheOrderOfOutputsAndNumbersAsTheyAre) {
  Block block = block_of({declare("x", vector_type())}, "z",
                         {instruction("add", {"x", "w"}, {"b"}), instruction("add", {"b", "number"}, {"z"}),
                          instruction("add", {"b", "z"}, {"a"})});
  block.outputs = {{"z", "", {}}, {"b", "", {}}, {"a", "", {}}};
  block.constants["w"] = numbers({1, 2});
  block.constants["number"] = Tensor::full(DataType::fp32, {}, 8);
  const Runner runner(module_of(std::move(block)), reference_options());
  const Instance instance = runner.instantiate({{"x", {DataType::fp32, {2}}}});
  verify(*instance.graph);
  std::vector<std::string> names;
  for (const Graph::Output& output : instance.graph->outputs()) names.push_back(output.name);
  EXPECT_EQ(names, (std::vector<std::string>{"z", "b", "a"}));
  EXPECT_EQ(instance.graph->find_input("number"), nullptr);  // passes look for it
  EXPECT_EQ(instance.weights.size(), 1u);
}

TEST(Runner, InstantiateNamesWhatNeedsContents) {
  Block block = block_of({declare("x", vector_type())}, "z",
                         {instruction("sum", {"x"}, {"y"}), instruction("take", {"x", "y"}, {"z"})});
  const Runner runner(module_of(std::move(block)), reference_options());
  expect_error(ErrorCode::unsupported, "needs the contents of 'y'", [&] {
    runner.instantiate({{"x", {DataType::fp32, {2}}}});
  });
}

TEST(Runner, ARuleThatAsksForWhatTheIslandMakesEndsIt) {
  Block block = block_of({declare("x", vector_type())}, "z",
                         {instruction("sum", {"x"}, {"n"}), instruction("take", {"x", "n"}, {"z"})});
  Runner runner(module_of(std::move(block)), reference_options());
  EXPECT_EQ(values_of(runner.run({{"x", numbers({2, 1, -1, 0})}}), "z"), (Values{2, 1}));
  EXPECT_EQ(values_of(runner.run({{"x", numbers({1, 0, 0, 0})}}), "z"), (Values{1}));
  const std::vector<IslandReport> islands = runner.islands();
  ASSERT_EQ(islands.size(), 3u);  // one for the sum, two for what it may be
  EXPECT_EQ(islands[0].end, 1u);
  EXPECT_NE(islands[0].why.find("needs the contents of 'n'"), std::string::npos) << islands[0].why;
}

TEST(Runner, WhatIsMadeOfShapesAndConstantsFolds) {
  Block block = block_of({declare("x", vector_type())}, "z",
                         {instruction("length", {"x"}, {"n"}), instruction("add", {"n", "minus_one"}, {"m"}),
                          instruction("take", {"x", "m"}, {"z"})});
  block.constants["minus_one"] = Tensor::from<int64_t>({1}, {-1});
  Runner runner(module_of(std::move(block)), reference_options());
  EXPECT_EQ(values_of(runner.run({{"x", numbers({5, 6, 7})}}), "z"), (Values{5, 6}));
  ASSERT_EQ(runner.islands().size(), 1u);
  EXPECT_EQ(runner.islands()[0].nodes, 1u);
}

TEST(Runner, PlansAreKeptByTypesAndKnownContents) {
  Block block = block_of({declare("x", vector_type()), declare("n", {DataType::int64, {1}})}, "z",
                         {instruction("take", {"x", "n"}, {"z"})});
  Runner runner(module_of(std::move(block)), reference_options());
  const auto take = [&](const std::vector<float>& x, int64_t n) {
    return values_of(runner.run({{"x", numbers(x)}, {"n", Tensor::from<int64_t>({1}, {n})}}), "z");
  };
  EXPECT_EQ(take({1, 2, 3}, 2), (Values{1, 2}));
  EXPECT_EQ(take({4, 5, 6}, 2), (Values{4, 5}));
  EXPECT_EQ(runner.islands().size(), 1u);
  EXPECT_EQ(take({4, 5, 6}, 1), (Values{4}));
  EXPECT_EQ(take({4, 5, 6, 7}, 1), (Values{4}));
  EXPECT_EQ(runner.islands().size(), 3u);
}

TEST(Runner, TheLeastRecentlyUsedPlanGoes) {
  Block block = block_of({declare("x", vector_type())}, "z", {instruction("add", {"x", "x"}, {"z"})});
  RunnerOptions options = reference_options();
  options.most_variants = 2;
  Runner runner(module_of(std::move(block)), options);
  for (const size_t size : {1u, 2u, 3u, 1u, 5u, 1u})
    EXPECT_EQ(values_of(runner.run({{"x", numbers(std::vector<float>(size, 1))}}), "z"), Values(size, 2));
  EXPECT_EQ(runner.islands().size(), 2u);
}

TEST(Runner, RulesOnTheHostRunEachTime) {
  Block block = block_of({declare("x", vector_type())}, "z",
                         {instruction("add", {"x", "x"}, {"y"}), instruction("positive", {"y"}, {"p"}),
                          instruction("add", {"p", "p"}, {"z"}), instruction("name", {"p"}, {"text"})});
  block.outputs.push_back({"text", "text", {}});
  Runner runner(module_of(std::move(block)), reference_options());
  EXPECT_EQ(values_of(runner.run({{"x", numbers({1, -1})}}), "z"), (Values{4}));
  const auto outputs = runner.run({{"x", numbers({2, 3})}});
  EXPECT_EQ(values_of(outputs, "z"), (Values{8, 12}));
  EXPECT_EQ(outputs.at("text").text()->values, std::vector<std::string>{"fp32[2]"});
}

Instruction choose(const std::string& condition, const std::string& then_operator) {
  Instruction result = instruction("choose", {condition}, {"z"});
  for (const std::string branch : {"then", "else"}) {
    const std::string local = branch + "_result";
    Block body{.name = branch};
    body.outputs = {{local, "", {}}};
    body.instructions = {branch == "then" ? instruction(then_operator, {"x"}, {local})
                                          : instruction("add", {"x", "x"}, {local})};
    prepare(body, &body);
    result.arguments[branch] = std::make_shared<const Block>(std::move(body));
  }
  return result;
}

TEST(Runner, AKnownConditionPutsItsBranchIntoTheIsland) {
  Block block = block_of({declare("x", vector_type())}, "z", {choose("no", "positive")});
  block.constants["no"] = Tensor::scalar(DataType::boolean, 0);
  Runner runner(module_of(std::move(block)), reference_options());
  EXPECT_EQ(values_of(runner.run({{"x", numbers({1, -1})}}), "z"), (Values{2, -2}));
  ASSERT_EQ(runner.islands().size(), 1u);
  EXPECT_EQ(runner.islands()[0].device, "reference");
}

TEST(Runner, ABranchThatNoGraphHoldsRunsAsABlock) {
  Block block = block_of({declare("x", vector_type()), declare("yes", {DataType::boolean, {}})}, "z",
                         {choose("yes", "positive")});
  Runner runner(module_of(std::move(block)), reference_options());
  EXPECT_EQ(
      values_of(runner.run({{"x", numbers({1, -1})}, {"yes", Tensor::scalar(DataType::boolean, 1)}}), "z"),
      (Values{1}));
}

TEST(Runner, RefusesWhatIsNoInput) {
  Block block = block_of({declare("image", {DataType::fp32, {2}})}, "z",
                         {instruction("add", {"image", "image"}, {"z"})});
  Runner runner(module_of(std::move(block)), reference_options());
  expect_error(ErrorCode::invalid_argument, "'image' (fp32[2]) is missing", [&] { runner.run({}); });
  expect_error(ErrorCode::invalid_argument, "did you mean 'image'", [&] {
    runner.run({{"imag", numbers({1, 2})}});
  });
  expect_error(ErrorCode::invalid_argument, "it is fp32[3]", [&] {
    runner.run({{"image", numbers({1, 2, 3})}});
  });
}

TEST(Runner, ListsOperatorsWithoutARuleBeforeItRuns) {
  Block block = block_of({declare("x", vector_type())}, "z",
                         {instruction("fly", {"x"}, {"y"}), instruction("fly", {"y"}, {"v"}),
                          instruction("swim", {"v"}, {"z"})});
  const auto module = module_of(std::move(block));
  expect_error(ErrorCode::unsupported, "test.fly (opset 1): 2 times, test.swim (opset 1): 1 time",
               [&] { Runner runner(module, reference_options()); });
}

TEST(Module, RefusesValuesThatNothingGives) {
  expect_error(ErrorCode::invalid_file, "'missing' is read", [] {
    module_of(block_of({declare("x", vector_type())}, "z", {instruction("add", {"x", "missing"}, {"z"})}));
  });
  expect_error(ErrorCode::invalid_file, "'later' is read", [] {
    module_of(
        block_of({declare("x", vector_type())}, "z",
                 {instruction("add", {"x", "later"}, {"z"}), instruction("add", {"x", "x"}, {"later"})}));
  });
  expect_error(ErrorCode::invalid_file, "given before", [] {
    module_of(block_of({declare("x", vector_type())}, "z",
                       {instruction("add", {"x", "x"}, {"z"}), instruction("add", {"x", "x"}, {"z"})}));
  });
}

}  // namespace
}  // namespace tessera::program
