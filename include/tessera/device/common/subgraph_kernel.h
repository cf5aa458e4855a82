// Kernels that are a small graph: the body of a fused node that no kernel of its kind takes, and operators
// whose definition is a few reductions and elementwise formulas, such as the norms.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/kernel.h"
#include "tessera/passes/pass.h"

namespace tessera::backend {

// The kernels of the nodes inside, in the order of preference.
using CandidatesOf = std::function<std::vector<KernelCandidate>(const Node& node)>;

// Runs `graph` node by node, each on its first willing candidate; its inputs and outputs are those of
// `request.node`. Throws Error(unsupported) naming the node that none takes.
std::unique_ptr<Kernel> make_subgraph_kernel(std::shared_ptr<const Graph> graph, const KernelRequest& request,
                                             const CandidatesOf& candidates);

// "unfused": the body of a fused node. Refuses other nodes.
KernelCandidate unfused_candidate(const CandidatesOf& candidates);

// NAME: the graph that the rule makes, with its work fused as `target` says. `check` refuses (refusal.h) the
// nodes that the rule is not for; unset: it is for all.
KernelCandidate rule_candidate(const std::string& name, const GraphRule& rule, const CandidatesOf& candidates,
                               const PassTarget& target = {},
                               const std::function<void(const KernelRequest& request)>& check = {});

}  // namespace tessera::backend
