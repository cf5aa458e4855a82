#include "support/comparison.h"

#include <map>
#include <set>

#include "tessera/graph/operator.h"

#include "support/rounding.h"
#include "support/unfused.h"

namespace tessera::testing {
namespace {

// What it makes of 16-bit values are 16-bit values, without another rounding.
bool is_exact(const Node& node) {
  static const std::set<std::string, std::less<>> kSelecting{"constant", "select", "maximum", "minimum",
                                                             "relu"};
  return node.schema().operator_class == OperatorClass::movement || kSelecting.contains(node.operator_name());
}

double largest_of(const Tensor& tensor) {
  double result = 0;
  for (double value : tensor.to_doubles())
    if (std::isfinite(value)) result = std::max(result, std::abs(value));
  return result;
}

// The inputs of the graph, rounded where it casts them to 16 bits: every kernel must.
OperandOf with_casts_of(const Graph& graph) {
  return [&graph](const Node& node, size_t, const Tensor& operand) {
    const Value* value = graph.find(node.output()->name());
    const bool narrows = node.operator_name() == "cast" && value->producer()->input(0)->producer() == nullptr;
    return narrows && is_half(value->data_type()) ? operand.cast(value->data_type()).cast(operand.data_type())
                                                  : operand;
  };
}

// Per output: two units of the largest of each 16-bit value that goes into it.
std::vector<double> rounding_between(const Graph& wide, const Graph& graph,
                                     const std::vector<Tensor>& inputs) {
  std::map<std::string, double> own;  // by the name of the value
  interpret(wide, inputs, [&](const Node& node, size_t index, const Tensor& operand) {
    const Value* value = graph.find(node.input(index)->name());
    if (value->producer() != nullptr && is_half(value->data_type()) && !is_exact(*value->producer()))
      own[value->name()] = 2 * unit_roundoff(value->data_type()) * largest_of(operand);
    return operand;
  });
  std::vector<double> result;
  for (const auto& output : graph.outputs()) {
    std::set<const Value*> seen;
    std::vector<const Value*> open{output.value};
    double sum = 0;
    while (!open.empty()) {
      const Value* value = open.back();
      open.pop_back();
      if (!seen.insert(value).second) continue;
      const auto found = own.find(value->name());
      if (found != own.end() && value != output.value) sum += found->second;
      // A comparison does not pass a rounding error on.
      if (value->producer() == nullptr || value->data_type() == DataType::boolean) continue;
      for (const Value* input : value->producer()->inputs()) open.push_back(input);
    }
    result.push_back(sum);
  }
  return result;
}

}  // namespace

Expectation expectation_of(const Graph& graph, const std::vector<Tensor>& inputs, Tolerances tolerances,
                           bool at_each_node) {
  const std::unique_ptr<Graph> wide = widened(graph);
  if (!wide) {
    Expectation result{run_reference(graph, inputs).outputs, {}, std::move(tolerances)};
    result.exact = result.results;
    return result;
  }
  Expectation result{{}, interpret(*wide, inputs, with_casts_of(graph)), std::move(tolerances)};
  if (at_each_node || graph.nodes().size() > 1) result.results = run_reference(graph, inputs).outputs;
  result.results.resize(result.exact.size());
  const std::vector<double> between =
      at_each_node ? rounding_between(*wide, graph, inputs) : std::vector<double>();
  for (size_t i = 0; i < result.exact.size(); ++i) {
    const Value& value = *graph.outputs()[i].value;
    if (!result.results[i].defined() || (is_half(value.data_type()) && !at_each_node))
      result.results[i] = result.exact[i].cast(value.data_type());
    // The kernels that run one after another have tests of their rounding of their own.
    if (!is_half(value.data_type()) || at_each_node) result.exact[i] = result.results[i];
    if (at_each_node) result.tolerances.at(i).absolute += between[i];
  }
  return result;
}

::testing::AssertionResult agrees(const std::vector<Tensor>& actual, const Expectation& expectation) {
  for (size_t i = 0; i < actual.size(); ++i) {
    ::testing::AssertionResult close =
        is_close(actual[i], expectation.results[i], expectation.tolerances.at(i));
    if (close) close = is_rounded_to_nearest(actual[i], expectation.exact[i]);
    if (!close) return close << ", output " << i;
  }
  return ::testing::AssertionSuccess();
}

void expect_noticed(const Comparison& comparison, const Run& run) {
  const std::vector<Tensor> honest = run(comparison.inputs);
  EXPECT_TRUE(agrees(honest, comparison.expectation)) << comparison.context;
  const MutationSubject subject{.graph = comparison.graph,
                                .inputs = comparison.inputs,
                                .honest = honest,
                                .exact = comparison.expectation.exact,
                                .run = run,
                                .simulated = *comparison.simulated,
                                .tf32 = comparison.tf32};
  for (const MutatedRun& mutated : mutated_runs(subject)) {
    const ::testing::AssertionResult result = agrees(mutated.results, comparison.expectation);
    const std::string what = comparison.context + ": " + mutated.text;
    record_mutation(mutated.mutation, comparison.family, !result, what);
    if (!result) ADD_FAILURE() << word_for(mutated.mutation) << " noticed: " << result.message();
  }
}

}  // namespace tessera::testing
