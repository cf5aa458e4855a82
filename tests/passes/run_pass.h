// One pass by name, as the tests of passes run it.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/pass.h"

#include "support/compare.h"
#include "support/random_tensor.h"

namespace tessera::testing {

// Returns whether it changed the graph. Throws Error(invalid_argument) for an unknown name.
inline bool run_pass(Graph& graph, const std::string& name, const PassContext& context = {}) {
  for (const Pass& pass : pipeline(context.options)) {
    if (pass.name == name) return pass.run(graph, context);
  }
  fail(ErrorCode::invalid_argument, "there is no pass '{}'", name);
}

// The text with the attributes of a convolution of one window position for each "$WINDOW".
inline std::string with_window(std::string text) {
  const std::string window =
      "dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]";
  for (size_t at = text.find("$WINDOW"); at != std::string::npos; at = text.find("$WINDOW"))
    text.replace(at, 7, window);
  return text;
}

// Synthetic inputs; scales and variances are positive.
inline std::vector<Tensor> graph_inputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const auto& input : graph.inputs()) {
    const bool positive = input->name().starts_with("variance") || input->name().starts_with("scale");
    inputs.push_back(random_tensor(input->data_type(), input->type().static_shape(), positive ? 0.5 : -2, 2,
                                   3 + inputs.size()));
  }
  return inputs;
}

// Both graphs through the reference interpreter, on the same inputs.
inline void expect_same_results(const Graph& before, const Graph& after, const Tolerance& tolerance) {
  const std::vector<Tensor> inputs = graph_inputs(before);
  const ReferenceResult expected = run_reference(before, inputs);
  const ReferenceResult actual = run_reference(after, inputs);
  for (size_t i = 0; i < expected.outputs.size(); ++i)
    expect_close(actual.outputs[i], expected.outputs[i], tolerance, "output " + before.outputs()[i].name);
  for (size_t i = 0; i < expected.updates.size(); ++i)
    expect_close(actual.updates[i], expected.updates[i], tolerance, "update " + std::to_string(i));
}

// A pass computes in another order, with some tens of sums and products of numbers within 2: each is rounded
// to fp32, by 2^-24 of about 4.
inline constexpr Tolerance kReordered{.absolute = 1e-5, .relative = 1e-5};

// A pass moves nodes into others, or recomputes them as they were: the same loops on the same numbers.
inline constexpr Tolerance kSameBits{};

// The pass turns one text into the other, which computes the same.
inline void expect_pass(const std::string& pass, const std::string& text, const std::string& expected,
                        const PassContext& context = {}, const Tolerance& tolerance = kReordered) {
  const std::unique_ptr<Graph> before = parse_graph(text);
  const std::unique_ptr<Graph> after = parse_graph(text);
  EXPECT_TRUE(run_pass(*after, pass, context));
  verify(*after);
  EXPECT_EQ(print(*after), print(*parse_graph(expected)));
  expect_same_results(*before, *after, tolerance);
}

// The pass must not fire.
inline void expect_no_change(const std::string& pass, const std::string& text,
                             const PassContext& context = {}) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  const std::string before = print(*graph);
  EXPECT_FALSE(run_pass(*graph, pass, context));
  EXPECT_EQ(print(*graph), before);
}

}  // namespace tessera::testing
