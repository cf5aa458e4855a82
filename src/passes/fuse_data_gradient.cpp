// The gradient of a tensor that two nodes read: the sum of a convolution's data gradient and the other
// reader's gradient, and the mask of the relu that made the tensor, in the convolution's kernel. Each would
// otherwise be passes over whole activations.
#include <algorithm>

#include "tessera/passes/fuse.h"

#include "passes/batch_norm_mask.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

// The addend that a convolution without strides makes for the sum alone: its kernel writes every element
// once, and in order.
Node* unstrided_data_gradient(const Node& sum) {
  for (const Value* addend : sum.inputs()) {
    Node* gradient = producer_of(addend, "convolution_data_gradient");
    if (gradient == nullptr || sole_reader(addend) != &sum || addend->type() != sum.output()->type())
      continue;
    const std::vector<int64_t> strides = gradient->attributes().integers("strides");
    if (std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; }))
      return gradient;
  }
  return nullptr;
}

}  // namespace

bool fuse_data_gradient(Graph& graph, const PassOptions& options) {
  if (!options.fuse_data_gradients) return false;
  bool changed = false;
  for (Node* sum : nodes_of(graph, "add")) {
    if (sum->input(0)->type() != sum->input(1)->type()) continue;
    Node* gradient = unstrided_data_gradient(*sum);
    if (gradient == nullptr) continue;
    std::vector<Node*> members{gradient, sum};
    if (const std::optional<ReluMask> mask = mask_after(sum->output())) {
      members.push_back(mask->greater);
      members.push_back(mask->select);
    }
    if (!fuses_without_cycle(members)) continue;
    fuse_nodes(graph, "convolution_data_gradient", members, {members.back()->output()});
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
