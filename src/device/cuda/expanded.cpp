#include "device/cuda/expanded.h"

#include "tessera/device/common/attention_rules.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/normalization_rules.h"
#include "tessera/device/common/subgraph_kernel.h"
#include "tessera/graph/operator.h"

#include "device/cuda/cluster/cluster_source.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/normalization/batch_norm_rules.h"

namespace tessera::cuda {
namespace {

const GraphRule* find_rule(const std::string& name) {
  for (const auto* rules :
       {&backend::normalization_rules(), &backend::attention_rules(), &batch_norm_rules()}) {
    const auto found = rules->find(name);
    if (found != rules->end()) return &found->second;
  }
  return nullptr;
}

// What recompute_activations recomputes has the bits of what it was. Where batch_norm_inference is the mask
// of a gradient instead, its own formula will do, and the clusters around share more of it.
bool is_recomputed(const Node& node) {
  return node.attributes().text("kind") == "batch_norm_inference";
}

// Within a body attention keeps its kernels: what is fused with it only moves its operands and results, and
// cuDNN may take them where they are moved to.
bool keeps_kernels(const Node& inner) {
  return backend::attention_rules().contains(inner.operator_name());
}

// Appends the nodes of a body, or the node itself, with rules in place of what they define.
std::vector<Value*> expand(const Node& node, const std::vector<Value*>& inputs) {
  if (node.body() == nullptr) return (*find_rule(node.operator_name()))(node, inputs);
  Graph& graph = inputs.front()->graph();
  ValueMapping mapping;
  for (const auto& input : node.body()->inputs()) mapping[input.get()] = inputs.at(input->index());
  static const GraphRule recomputed = recomputed_batch_norm;
  for (const auto& inner : node.body()->nodes()) {
    const bool recomputes_normalization =
        inner->operator_name() == "batch_norm_inference" && is_recomputed(node);
    const GraphRule* rule = recomputes_normalization ? &recomputed : find_rule(inner->operator_name());
    if (rule == nullptr || keeps_kernels(*inner)) {
      copy_node(*inner, graph, mapping);
      continue;
    }
    std::vector<Value*> arguments;
    for (const Value* input : inner->inputs()) arguments.push_back(mapping.at(input));
    const std::vector<Value*> results = (*rule)(*inner, arguments);
    for (size_t i = 0; i < results.size(); ++i) mapping[inner->output(i)] = results[i];
  }
  std::vector<Value*> outputs;
  for (const Graph::Output& output : node.body()->outputs()) outputs.push_back(mapping.at(output.value));
  return outputs;
}

}  // namespace

bool has_rule(const Node& node) {
  return find_rule(node.operator_name()) != nullptr;
}

KernelCandidate expanded_candidate(const Node& node, Context& context) {
  PassTarget target;
  target.clusters_take = clusters_take;
  target.reductions_per_cluster = kReductionsOfACluster;
  target.values_per_joined_cluster = 48;
  return backend::rule_candidate(
      "expanded", expand, [&context](const Node& inner) { return cuda_candidates(inner, context); }, target);
}

}  // namespace tessera::cuda
