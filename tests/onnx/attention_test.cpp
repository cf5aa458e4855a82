// Attention as the operator, with the heads of keys and values that the file has.
#include <algorithm>

#include "tessera/graph/operator.h"

#include "onnx/model.h"
#include "support/compare.h"
#include "support/random_tensor.h"

namespace tessera::onnx {
namespace {

constexpr int64_t kQueryHeads = 4, kKeyHeads = 2, kQueryRows = 3, kKeyRows = 5, kHeadWidth = 6;

::onnx::ModelProto attention_model(bool causal, bool masked, bool shows_scores) {
  ::onnx::ModelProto result = model(23);
  ::onnx::GraphProto& graph = *result.mutable_graph();
  add_input(graph, "q", {2, kQueryRows, kQueryHeads * kHeadWidth});
  add_input(graph, "k", {2, kKeyRows, kKeyHeads * kHeadWidth});
  add_input(graph, "v", {2, kKeyRows, kKeyHeads * kHeadWidth});
  if (masked) add_input(graph, "mask", {kQueryHeads, 1, kKeyRows});
  std::vector<std::string> outputs{"y"};
  if (shows_scores) outputs.insert(outputs.end(), {"", "", "scores"});
  ::onnx::NodeProto* node = add_node(graph, "Attention", {"q", "k", "v", masked ? "mask" : ""}, outputs);
  set_attribute(node, "q_num_heads", kQueryHeads);
  set_attribute(node, "kv_num_heads", kKeyHeads);
  set_attribute(node, "is_causal", causal ? 1 : 0);
  add_output(graph, "y");
  if (shows_scores) add_output(graph, "scores");
  return result;
}

bool holds_repeated_keys(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return node->output()->shape() == to_symbolic({2, kQueryHeads, kKeyRows, kHeadWidth});
  });
}

TEST(OnnxAttention, IsTheOperatorUnlessScoresAreShown) {
  for (const bool causal : {false, true}) {
    for (const bool masked : {false, true}) {
      std::map<std::string, program::Item> inputs;
      std::map<std::string, TensorType> types;
      const auto add = [&](const std::string& name, const Shape& shape) {
        types[name] = {DataType::fp32, to_symbolic(shape)};
        inputs[name] = testing::random_tensor(DataType::fp32, shape, -2, 2, 3 + types.size());
      };
      add("q", {2, kQueryRows, kQueryHeads * kHeadWidth});
      add("k", {2, kKeyRows, kKeyHeads * kHeadWidth});
      add("v", {2, kKeyRows, kKeyHeads * kHeadWidth});
      if (masked) add("mask", {kQueryHeads, 1, kKeyRows});
      std::vector<Tensor> results;
      for (const bool shows_scores : {false, true}) {
        program::Runner runner(parse(attention_model(causal, masked, shows_scores)),
                               {.devices = {Device::reference()}});
        const program::Instance instance = runner.instantiate(types);
        const auto& nodes = instance.graph->nodes();
        EXPECT_EQ(std::any_of(nodes.begin(), nodes.end(),
                              [](const auto& node) { return node->operator_name() == "attention"; }),
                  !shows_scores);
        EXPECT_FALSE(holds_repeated_keys(*instance.graph)) << print(*instance.graph);
        results.push_back(*runner.run(inputs).at("y").tensor());
      }
      // The same sums, of exponentials of numbers that differ by a rounding.
      testing::expect_close(results[0], results[1].to_doubles(), {.absolute = 1e-5, .relative = 1e-5});
    }
  }
}

}  // namespace
}  // namespace tessera::onnx
