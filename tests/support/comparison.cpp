#include "support/comparison.h"

#include <map>

#include "tessera/graph/operator.h"

#include "support/rounding.h"
#include "support/unfused.h"

namespace tessera::testing {
namespace {

::testing::AssertionResult agrees(const std::vector<Tensor>& actual, const Expectation& expectation) {
  for (size_t i = 0; i < actual.size(); ++i) {
    ::testing::AssertionResult close =
        is_close(actual[i], expectation.results[i], expectation.tolerances.at(i));
    if (close) close = is_rounded_to_nearest(actual[i], expectation.exact[i]);
    if (!close) return close << ", output " << i;
  }
  return ::testing::AssertionSuccess();
}

// Two units of the largest 16-bit value, for each that is read by another node.
double rounding_between(const Graph& wide, const Graph& graph, const std::vector<Tensor>& inputs) {
  double result = 0;
  std::map<std::string, double> units;
  for (const auto& node : graph.nodes()) {
    const DataType type = node->output()->data_type();
    if (is_floating(type) && size_of(type) == 2 && node->operator_name() != "constant")
      units[node->output()->name()] = 2 * unit_roundoff(type);
  }
  interpret(wide, inputs, [&](const Node& node, size_t index, const Tensor& operand) {
    const auto unit = units.find(node.input(index)->name());
    if (unit == units.end()) return operand;
    double largest = 0;
    for (double value : operand.to_doubles())
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    result += unit->second * largest;
    units.erase(unit);
    return operand;
  });
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
  Expectation result{{}, interpret(*wide, inputs), std::move(tolerances)};
  if (at_each_node || graph.nodes().size() > 1) result.results = run_reference(graph, inputs).outputs;
  result.results.resize(result.exact.size());
  for (size_t i = 0; i < result.exact.size(); ++i) {
    const DataType type = graph.outputs()[i].value->data_type();
    const bool is_narrow = is_floating(type) && size_of(type) == 2;
    if (!result.results[i].defined() || (is_narrow && !at_each_node))
      result.results[i] = result.exact[i].cast(type);
    if (!is_narrow) result.exact[i] = result.results[i];
    if (at_each_node) result.tolerances[i].absolute += rounding_between(*wide, graph, inputs);
  }
  return result;
}

std::vector<Tensor> compare(const Comparison& comparison, const Run& run) {
  std::vector<Tensor> actual = run(comparison.inputs);
  EXPECT_EQ(actual.size(), comparison.expectation.results.size());
  EXPECT_TRUE(agrees(actual, comparison.expectation)) << comparison.context;
  if (getenv("SLACK")) for (size_t i = 0; i < actual.size(); ++i) { double w=0, mx=0; for (int64_t e=0;e<actual[i].size();++e) { w=std::max(w,excess(actual[i].at(e),comparison.expectation.results[i].at(e),comparison.expectation.tolerances[i])); mx=std::max(mx,std::abs(comparison.expectation.results[i].at(e))); } const auto r = rounding_errors(actual[i], comparison.expectation.exact[i]); fprintf(stderr,"SLACK %.3g %s %s out%zu tol %.2g %.2g max %.3g | %.3f %.3f %ld | %s\n", w, comparison.family.c_str(), std::string(to_string(actual[i].data_type())).c_str(), i, comparison.expectation.tolerances[i].absolute, comparison.expectation.tolerances[i].relative, mx, r.of_magnitude, r.of_number, (long)r.elements, comparison.context.substr(0,comparison.context.find('\n')).c_str()); }
  if (mutations().empty()) return actual;
  const MutationSubject subject{comparison.graph, comparison.inputs, actual, comparison.expectation.exact,
                                run,              comparison.tf32};
  for (const MutatedRun& mutated : mutated_runs(subject)) {
    const ::testing::AssertionResult result = agrees(mutated.results, comparison.expectation);
    const std::string what = comparison.context + ": " + mutated.text;
    record_mutation(mutated.mutation, comparison.family, !result, what);
    if (!result) ADD_FAILURE() << word_for(mutated.mutation) << " noticed: " << result.message();
  }
  return actual;
}

}  // namespace tessera::testing
