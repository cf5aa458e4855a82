// Every gradient rule against central differences in fp64, for every example of every operator.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/differentiate.h"

#include "ops/examples.h"

namespace tessera::testing {
namespace {

// Operators that have no gradient to compare, and why.
const std::map<std::string, std::string>& without_gradient() {
  static const std::map<std::string, std::string> list = [] {
    std::map<std::string, std::string> result;
    const auto all = [&](std::initializer_list<const char*> names, const char* reason) {
      for (const char* name : names) result.emplace(name, reason);
    };
    all({"constant", "iota"}, "has no inputs");
    all({"random_uniform", "random_normal"}, "depends on an integer counter only");
    all({"one_hot"}, "depends on integers only");
    all({"combine_rows", "set_rows"}, "is for gradients and updates, which nothing differentiates");
    all({"argmax", "count_elements"}, "makes integers");
    all({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
         "logical_not", "is_finite"},
        "makes booleans");
    all({"fused"}, "is made after differentiation");
    for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
      if (schema->name.ends_with("_gradient") && !schema->gradient && !schema->decompose) {
        result.emplace(schema->name, "is a gradient itself; second derivatives are not taken");
      }
    }
    return result;
  }();
  return list;
}

// loss = sum over the fp64 outputs of sum(output * weights); the weights are inputs after the example's own.
struct GradientProblem {
  std::unique_ptr<Graph> graph;
  std::vector<size_t> sources;  // inputs to differentiate by
  std::vector<Tensor> tensors;
  std::string label;
};

std::optional<GradientProblem> make_problem(const OperatorSchema& schema, size_t index, DataType type) {
  auto example = make_example(schema, index, type);
  if (!example) return std::nullopt;
  GradientProblem problem{
      .graph = nullptr, .sources = {}, .tensors = example->tensors, .label = example->label};
  for (size_t i = 0; i < example->inputs.size(); ++i) {
    if (is_floating(example->inputs[i]->data_type())) problem.sources.push_back(i);
  }
  Value* loss = nullptr;
  Graph& graph = *example->graph;
  for (const auto& output : example->node->outputs()) {
    // An output of another floating type would bring its own rounding, larger than the step.
    if (output->data_type() != type) continue;
    const size_t place = problem.tensors.size();
    Value* weights = graph.add_input(InputRole::input, "weights" + std::to_string(place), output->type());
    problem.tensors.push_back(random_tensor(type, output->type().static_shape(), -1, 1, place));
    Value* part = ops::reduce_sum(ops::multiply(output.get(), weights));
    loss = loss == nullptr ? part : ops::add(loss, part);
  }
  if (loss == nullptr) return std::nullopt;
  graph.erase_outputs();
  graph.add_output("loss", loss);
  problem.graph = std::move(example->graph);
  return problem;
}

// The graph with the gradients to the sources as its outputs.
std::unique_ptr<Graph> gradient_graph(const GradientProblem& problem) {
  auto graph = problem.graph->clone();
  std::vector<Value*> sources;
  for (const size_t source : problem.sources) sources.push_back(graph->inputs()[source].get());
  Value* loss = graph->outputs()[0].value;
  graph->erase_outputs();
  const std::vector<Value*> gradients = differentiate(*graph, loss, sources);
  for (Value* gradient : gradients) graph->add_output(gradient->name(), gradient);
  verify(*graph);
  return graph;
}

double loss_at(const GradientProblem& problem, size_t input, const Tensor& moved) {
  std::vector<Tensor> tensors = problem.tensors;
  tensors[input] = moved;
  return run_reference(*problem.graph, tensors).outputs[0].at(0);
}

// The truncation error is step^2/6 times the third derivative, about 1e-11; the rounding error is 2^-53 times
// the loss (below 100) over the step, about 1e-9. What is left is room for steep examples.
constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;

double central_difference(const GradientProblem& problem, size_t input,
                          const std::vector<double>& direction) {
  Tensor ahead = problem.tensors[input].clone();
  Tensor back = problem.tensors[input].clone();
  for (int64_t i = 0; i < ahead.size(); ++i) {
    ahead.set(i, ahead.at(i) + kStep * direction[static_cast<size_t>(i)]);
    back.set(i, back.at(i) - kStep * direction[static_cast<size_t>(i)]);
  }
  return (loss_at(problem, input, ahead) - loss_at(problem, input, back)) / (2 * kStep);
}

// Single elements, at most this many, and one direction through all of them.
constexpr int64_t kMostElements = 16;

void compare(const GradientProblem& problem, size_t input, const Tensor& gradient) {
  const int64_t size = gradient.size();
  const auto count = static_cast<size_t>(size);
  for (int64_t sample = 0; sample < std::min(size, kMostElements); ++sample) {
    const int64_t element = size <= kMostElements ? sample : sample * (size - 1) / (kMostElements - 1);
    std::vector<double> direction(count, 0);
    direction[static_cast<size_t>(element)] = 1;
    const double expected = central_difference(problem, input, direction);
    ASSERT_NEAR(gradient.at(element), expected, kTolerance * (1 + std::abs(expected)))
        << problem.label << ", input " << input << ", element " << element;
  }
  const std::vector<double> direction = random_tensor(DataType::fp64, {size}, -1, 1, 99).to_doubles();
  double along = 0;
  for (size_t i = 0; i < count; ++i) along += direction[i] * gradient.at(static_cast<int64_t>(i));
  const double expected = central_difference(problem, input, direction);
  EXPECT_NEAR(along, expected, kTolerance * (1 + std::abs(expected)))
      << problem.label << ", input " << input << ", along a direction";
}

class GradientTest : public ::testing::TestWithParam<std::string> {
 protected:
  const OperatorSchema& schema() const { return OperatorRegistry::instance().get(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Registry, GradientTest, ::testing::ValuesIn(operator_names()),
                         [](const auto& info) { return info.param; });

TEST_P(GradientTest, AgreesWithCentralDifferences) {
  int64_t compared = 0;
  const auto reason = without_gradient().find(GetParam());
  for (size_t i = 0; i < schema().examples.size(); ++i) {
    const auto problem = make_problem(schema(), i, DataType::fp64);
    if (!problem || reason != without_gradient().end()) continue;
    ASSERT_TRUE(schema().gradient || schema().decompose)
        << "has no gradient: give it a rule, or a line in without_gradient()";
    const auto gradients = run_reference(*gradient_graph(*problem), problem->tensors).outputs;
    for (size_t source = 0; source < gradients.size(); ++source) {
      compare(*problem, problem->sources[source], gradients[source]);
      ++compared;
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_TRUE(compared > 0 || reason != without_gradient().end())
      << "nothing could be compared: needs an example that makes fp64 from fp64, or a line in "
         "without_gradient()";
}

// The rules also hold their types in reduced precision.
TEST_P(GradientTest, IsFiniteInEveryType) {
  if (without_gradient().contains(GetParam())) return;
  ASSERT_TRUE(schema().gradient || schema().decompose);
  for (size_t i = 0; i < schema().examples.size(); ++i) {
    for (const DataType type : {DataType::fp32, DataType::fp16, DataType::bf16}) {
      const auto problem = make_problem(schema(), i, type);
      if (!problem) continue;
      SCOPED_TRACE(problem->label);
      for (const Tensor& gradient : run_reference(*gradient_graph(*problem), problem->tensors).outputs) {
        EXPECT_TRUE(all_finite(gradient));
      }
    }
  }
}

TEST(GradientList, NamesOnlyOperatorsThatExist) {
  for (const auto& [name, reason] : without_gradient()) {
    EXPECT_NE(OperatorRegistry::instance().find(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace tessera::testing
