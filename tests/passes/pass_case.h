// Text cases for passes: graph text in, graph text out, and both give the same numbers.
#pragma once

#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/pass.h"

namespace tessera::testing {

// Runs one pass of the pipeline, by name.
inline bool run_pass(const std::string& name, Graph& graph, const PassContext& context) {
  for (const Pass& pass : pipeline(context.options)) {
    if (pass.name == name) return pass.run(graph, context);
  }
  ADD_FAILURE() << "there is no pass " << name;
  return false;
}

// Fused nodes of that kind.
inline size_t count_of_kind(const Graph& graph, std::string_view kind) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
    return node->body() != nullptr && node->attributes().text("kind") == kind;
  }));
}

// Random inputs of a static graph, the same for graphs of the same inputs.
inline std::vector<Tensor> synthetic_inputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const auto& input : graph.inputs()) {
    const Random random(7, inputs.size());
    Tensor tensor(input->data_type(), input->type().static_shape());
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 0.5 + random.uniform(static_cast<uint64_t>(i)));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// Inputs are between 0.5 and 1.5: what a rewrite computes in another order is about 1, and some eight
// roundings to fp32 of it make half of this.
inline constexpr double kFewRoundings = 1e-6;

// Runs the pass on `before`; the result must print as `after` prints, verify, and compute the same within
// `tolerance`.
inline void expect_rewrite(const std::string& pass, const char* before, const char* after,
                           double tolerance = kFewRoundings, const PassContext& context = {}) {
  const auto original = parse_graph(before, "before");
  const auto graph = parse_graph(before, "before");
  const bool changed = run_pass(pass, *graph, context);
  verify(*graph);
  const std::string expected = print(*parse_graph(after, "after"));
  EXPECT_EQ(print(*graph), expected);
  EXPECT_EQ(changed, print(*original) != print(*graph))
      << "the pass does not say whether it changed the graph";
  const std::vector<Tensor> inputs = synthetic_inputs(*original);
  const ReferenceResult left = run_reference(*original, inputs);
  const ReferenceResult right = run_reference(*graph, inputs);
  ASSERT_EQ(left.outputs.size(), right.outputs.size());
  for (size_t i = 0; i < left.outputs.size(); ++i) {
    for (int64_t e = 0; e < left.outputs[i].size(); ++e) {
      EXPECT_NEAR(left.outputs[i].at(e), right.outputs[i].at(e), tolerance);
    }
  }
}

// The pass must leave the graph alone.
inline void expect_untouched(const std::string& pass, const char* text, const PassContext& context = {}) {
  expect_rewrite(pass, text, text, 0, context);
}

}  // namespace tessera::testing
