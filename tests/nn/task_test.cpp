#include "tessera/nn/task.h"

#include <gtest/gtest.h>

#include "tessera/nn/layers.h"

#include "support/expect_error.h"

namespace tessera::nn {
namespace {

TEST(Values, AreFoundByName) {
  Graph graph;
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {4}});
  Values values{{"tokens", tokens}};
  values.add("labels", tokens);
  EXPECT_EQ(values["labels"], tokens);
  EXPECT_ERROR(values["token"], ErrorCode::invalid_argument, "no value 'token', did you mean 'tokens'",
               "tokens, labels");
}

std::vector<double> run(Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<double> values;
  for (const Tensor& tensor : run_reference(graph, inputs).outputs) values.push_back(tensor.at(0));
  return values;
}

TEST(Measures, AreSumsAndWeights) {
  Graph graph;
  Value* elements = graph.add_input(InputRole::input, "elements", {DataType::fp16, {2, 2}});
  Value* counts = graph.add_input(InputRole::input, "counts", {DataType::boolean, {2, 1}});
  const Measure all = mean_of("all", elements);
  const Measure some = mean_of("some", elements, counts);
  const Measure total = total_of("total", {all, some});
  for (const Measure& measure : {all, some, total}) {
    EXPECT_EQ(measure.sum->type(), (TensorType{DataType::fp32, {}}));
    graph.add_output(measure.name, measure.sum);
    graph.add_output(measure.name + "_weight", measure.weight);
  }
  const Tensor values = Tensor::from_doubles(DataType::fp16, {2, 2}, std::vector<double>{1, 2, 4, 8});
  EXPECT_EQ(run(graph, {values, Tensor::from_doubles(DataType::boolean, {2, 1}, std::vector<double>{0, 1})}),
            (std::vector<double>{15, 4, 12, 2, 3.75 + 6, 1}));
  // Where nothing counts, the mean of nothing adds nothing.
  EXPECT_EQ(run(graph, {values, Tensor(DataType::boolean, {2, 1})}),
            (std::vector<double>{15, 4, 0, 0, 3.75, 1}));
}

TEST(Inputs, HaveTheSizesOfTheirSymbols) {
  const Dimension batch = Dimension::symbol("batch");
  const Task task{.name = "tagging",
                  .inputs = {{"tokens", {DataType::int32, {batch, Dimension::symbol("tokens")}}}}};
  Graph graph;
  const Values values = add_inputs(graph, task, {{"batch", 2}, {"tokens", 5}, {"unknown", 3}});
  EXPECT_EQ(values["tokens"]->type(), (TensorType{DataType::int32, {2, 5}}));
  Graph other;
  EXPECT_ERROR(add_inputs(other, task, {{"batch", 2}}), ErrorCode::invalid_argument, "'tokens' of tagging",
               "int32[batch, tokens]", "how large tokens is");
}

TEST(Context, ScopesBeginTheNamesOfVariables) {
  Graph graph;
  Context context(graph, Mode::training);
  const auto weight = [&](const std::string& name) { return context.parameter(name, {1}, zeros())->name(); };
  {
    const auto encoder = context.scope("encoder");
    EXPECT_EQ(weight("weight"), "encoder.weight");
    const auto layer = context.scope("layer0");
    EXPECT_EQ(weight("weight"), "encoder.layer0.weight");
    EXPECT_EQ(context.random_counter()->name(), "random_counter");
  }
  EXPECT_EQ(weight("weight"), "weight");
  EXPECT_EQ(context.random_counter(), graph.find_input("random_counter"));
}

// A stream belongs to its scope: what else a network holds does not change it.
TEST(Context, RandomStreamsComeFromTheScopes) {
  const auto streams = [](bool with_another) {
    Graph graph;
    Context context(graph, Mode::training);
    std::vector<int64_t> numbers;
    if (with_another) {
      const auto other = context.scope("other");
      context.next_random_stream();
    }
    const auto scope = context.scope("judge");
    for (int i = 0; i < 2; ++i) numbers.push_back(context.next_random_stream());
    return numbers;
  };
  EXPECT_EQ(streams(false), streams(true));
  EXPECT_EQ(streams(false)[1], streams(false)[0] + 1);
  Graph graph;
  Context context(graph, Mode::training);
  EXPECT_EQ(context.next_random_stream(), 0);
  EXPECT_EQ(context.next_random_stream(), 1);
}

// A layer that is used twice updates its statistics twice, as in PyTorch.
TEST(Context, AStateThatWasUpdatedIsItsNewValue) {
  Graph graph;
  Context context(graph, Mode::training);
  Value* first = context.state("count", {}, zeros());
  context.update(first, ops::add(first, 1));
  Value* second = context.state("count", {}, zeros());
  context.update(second, ops::multiply(second, 5));
  context.update(context.state("count", {}, zeros()), ops::add(context.state("count", {}, zeros()), 100));
  ASSERT_EQ(graph.updates().size(), 1U);
  EXPECT_EQ(graph.updates()[0].state, first);
  EXPECT_EQ(run_reference(graph, std::vector<Tensor>{Tensor::scalar(DataType::fp32, 2)}).updates[0].at(0),
            115);
}

// A mask that grows: it is a state that the transform adds, whatever the scope of the parameter.
Value* masked(Context& context, const Variable& parameter, Value* value) {
  Value* mask = context.state(parameter.name + ".mask", parameter.shape, constant(1));
  Value* half = ops::constant(context.graph(), Tensor::scalar(DataType::fp32, 0.5));
  context.update(mask, ops::cast(ops::greater(ops::absolute(value), half), DataType::fp32));
  return ops::multiply(value, mask);
}

TEST(Context, TransformsWhatParametersAreReadAs) {
  Graph graph;
  Context context(graph, Mode::training);
  Value* before = context.parameter("before", {2}, zeros());
  int calls = 0;
  context.transform([&](const Variable& parameter, Value* value) {
    ++calls;
    return masked(context, parameter, value);
  });
  context.transform([](const Variable&, Value* value) { return ops::multiply(value, 2); });
  Value* value = nullptr;
  {
    const auto scope = context.scope("encoder");
    value = context.parameter("w", {2}, zeros());
    EXPECT_EQ(context.parameter("w", {2}, zeros()), value);  // shared
    EXPECT_EQ(context.state("counter", {}, zeros())->producer(), nullptr);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(context.parameter("before", {2}, zeros()), before);
  graph.add_output("value", value);
  std::vector<std::string> names;
  for (const Variable& variable : context.variables()) names.push_back(variable.name);
  EXPECT_EQ(names, (std::vector<std::string>{"before", "encoder.w", "encoder.w.mask", "encoder.counter"}));
  const auto numbers = [](double a, double b) {
    return Tensor::from<float>({2}, std::vector<float>{static_cast<float>(a), static_cast<float>(b)});
  };
  const ReferenceResult result =
      run_reference(graph, std::vector<Tensor>{numbers(0, 0), numbers(0.25, -3), numbers(1, 0),
                                               Tensor::scalar(DataType::fp32, 0)});
  EXPECT_EQ(result.outputs[0].to_doubles(), (std::vector<double>{0.5, 0}));
  EXPECT_EQ(result.updates[0].to_doubles(), (std::vector<double>{0, 1}));
}

TEST(Context, RefusesTransformsThatMakeAnotherType) {
  Graph graph;
  Context context(graph, Mode::training);
  context.transform([](const Variable&, Value* value) { return ops::reduce_sum(value, {.axes = {0}}); });
  EXPECT_ERROR(context.parameter("w", {2}, zeros()), ErrorCode::invalid_argument,
               "a transform makes fp32[] of the parameter 'w', which is fp32[2]");
}

TEST(Context, OnlyStatesThatAdvanceChangeInInference) {
  Graph graph;
  Context context(graph, Mode::inference);
  Value* statistics = context.state("statistics", {}, zeros());
  context.update(statistics, ops::add(statistics, 1));
  EXPECT_TRUE(graph.updates().empty());
  Value* memory = context.state({.name = "memory", .shape = {}, .initializer = zeros(), .advances = true});
  context.update(memory, ops::add(memory, 1));
  ASSERT_EQ(graph.updates().size(), 1U);
  EXPECT_EQ(graph.updates()[0].state, memory);
}

TEST(Context, KnowsWhichObjectiveIsTrained) {
  Graph graph;
  EXPECT_TRUE(Context(graph, Mode::training).trains("judge"));
  EXPECT_TRUE(Context(graph, Mode::training, "judge").trains("judge"));
  EXPECT_FALSE(Context(graph, Mode::training, "mover").trains("judge"));
}

}  // namespace
}  // namespace tessera::nn
