// Training keeps every activation from its forward use to its backward one. Where y = relu(batch_norm(x)),
// the gradient of the normalization keeps x and the batch's statistics as well, and y is one pass over memory
// away from them: the weight gradients that read y get copies made right before they run, and y dies in the
// forward half. Chen et al., "Training deep nets with sublinear memory cost" (2016), is the general idea.
//
//   y -> convolution -> ... -> loss ... -> dz -> data gradient -> mask -> gradient of the normalization
//    \-----------------------------------> dz -> weight gradient
//
// The halves are told apart by dependence. The gradient of the normalization needs every forward reader of y,
// through which the loss's gradient reaches it. A late reader is one that it does not need, and that itself
// needs all of them: it can run only after the loss.
//
// The cast of the images is kept for the first layer's weight gradient, over the whole step, while the images
// themselves stay in memory anyway: a weight gradient gets a cast of its own.
//
// Other elementwise values are recomputed where it is asked for, or costs little (recompute_elementwise.cpp).
#include <algorithm>
#include <limits>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/batch_norm_mask.h"
#include "tessera/passes/fuse.h"

#include "passes/late_readers.h"
#include "passes/passes.h"

namespace tessera::passes {
namespace {

// A relu's result that may be recomputed.
struct Activation {
  const Node* norm = nullptr;
  Value* y = nullptr;
  std::vector<Node*> readers;  // late ones that get copies

  int64_t bytes_of_copies() const { return static_cast<int64_t>(readers.size()) * y->type().bytes(); }
};

// Of the mask's y. A view of it would be the same memory, for who knows how long.
std::vector<Node*> late_readers_of(const Dependence& dependence, const Node& gradient, const ReluMask& mask) {
  std::vector<Node*> readers;
  for (const Use& use : mask.greater->input(0)->uses()) {
    if (use.node->schema().traits.view) return {};
    if (use.node != mask.greater)
      readers.push_back(use.node);  // will be made from x (batch_norm_gradient_pattern)
  }
  return late_readers(dependence, gradient, readers);
}

std::vector<Activation> find_activations(const Graph& graph, const PassTarget& target) {
  struct Candidate {
    const Node* gradient;
    ReluMask mask;
    const Node* norm;
  };
  std::vector<Candidate> candidates;
  std::vector<const Node*> readers;
  for (const Node* gradient : nodes_of(graph, "batch_norm_gradient")) {
    const std::optional<ReluMask> mask = find_relu_mask(gradient->input(0));
    const Node* norm = mask.has_value() ? masked_normalization(*gradient, *mask) : nullptr;
    if (norm == nullptr) continue;
    const Value* y = mask->greater->input(0);
    if (y->is_output_or_update() || sole_reader(norm->output()) != y->producer()) continue;
    candidates.push_back({gradient, *mask, norm});
    for (const Use& use : y->uses()) readers.push_back(use.node);
  }
  if (candidates.empty()) return {};
  const Dependence dependence(graph, readers);
  std::vector<Activation> found;
  for (const auto& [gradient, mask, norm] : candidates) {
    Activation activation{norm, mask.greater->input(0), late_readers_of(dependence, *gradient, mask)};
    if (target.recomputes_activation)
      std::erase_if(activation.readers,
                    [&](const Node* reader) { return target.recomputes_activation(*reader); });
    if (!activation.readers.empty()) found.push_back(std::move(activation));
  }
  return found;
}

double written_bytes(const Graph& graph) {
  double bytes = 0;
  for (const auto& node : graph.nodes()) {
    for (const auto& output : node->outputs()) bytes += static_cast<double>(output->type().bytes());
  }
  return bytes;
}

// What the nodes write, and what the device could write while it computes.
double work_in_bytes(const Graph& graph, double bytes_per_flop) {
  double flops = 0;
  for (const auto& node : graph.nodes()) {
    if (node->schema().flops) flops += node->schema().flops(*node);
  }
  return written_bytes(graph) + flops * bytes_per_flop;
}

// Leaves those of at most `limit` bytes and, of the others, the largest whose copies fit the share.
void choose(const Graph& graph, int64_t limit, const PassTarget& target,
            std::vector<Activation>& activations) {
  const double written = written_bytes(graph);
  const bool large = written >= static_cast<double>(target.large_step_bytes);
  double room = written * (large ? target.recompute_share_of_large_steps : target.recompute_share);
  std::stable_sort(activations.begin(), activations.end(), [](const Activation& a, const Activation& b) {
    return a.y->type().bytes() > b.y->type().bytes();
  });
  std::erase_if(activations, [&](const Activation& activation) {
    if (activation.y->type().bytes() <= limit) return false;
    const auto copies = static_cast<double>(activation.bytes_of_copies());
    if (copies > room) return true;
    room -= copies;
    return false;
  });
}

bool recompute_normalizations(Graph& graph, int64_t limit, const PassTarget& target) {
  std::vector<Activation> activations = find_activations(graph, target);
  choose(graph, limit, target, activations);
  for (const Activation& activation : activations) {
    for (Node* reader : activation.readers)
      recompute_for(graph, activation.y, reader,
                    [&] { return ops::relu(recompute_normalization(*activation.norm)); });
  }
  return !activations.empty();
}

// The weight gradient that reads y, of which a convolution is the other reader, and runs after it.
Node* late_weight_gradient(const Graph& graph, const Value& y) {
  if (y.uses().size() != 2) return nullptr;
  Node* early = y.uses()[0].node;
  Node* late = y.uses()[1].node;
  if (early->operator_name() != "convolution") std::swap(early, late);
  const bool both =
      early->operator_name() == "convolution" && late->operator_name() == "convolution_weight_gradient";
  return both && Dependence(graph, {early}).depends(*late, *early) ? late : nullptr;
}

bool recompute_casts_of_inputs(Graph& graph, int64_t limit) {
  bool changed = false;
  for (const Node* cast : nodes_of(graph, "cast")) {
    Value* x = cast->input(0);
    const Value* y = cast->output();
    if (x->producer() != nullptr || x->role() != InputRole::input || y->is_output_or_update()) continue;
    if (y->type().bytes() > limit) continue;
    if (Node* reader = late_weight_gradient(graph, *y)) {
      recompute_for(graph, y, reader, [&] { return ops::cast(x, y->data_type()); });
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool recompute_activations(Graph& graph, const PassContext& context) {
  if (!context.options.recompute.value_or(true)) return false;
  const int64_t limit = context.options.recompute.has_value() ? std::numeric_limits<int64_t>::max()
                                                              : context.target.recompute_limit_bytes;
  const bool normalizations = recompute_normalizations(graph, limit, context.target);
  const bool casts = recompute_casts_of_inputs(graph, limit);
  // A copy of another is one more pass over memory, but for those that are made beside what is read in any
  // case: the others only for those who ask for them.
  ElementwiseCopies copies{.most_bytes = std::numeric_limits<double>::infinity()};
  if (const double share = context.target.recompute_share_beside; !context.options.recompute.value_or(false))
    copies = {.most_bytes = share > 0 ? share * work_in_bytes(graph, context.target.bytes_per_flop) : 0,
              .beside = true};
  const bool others = recompute_elementwise(graph, copies);
  return normalizations || casts || others;
}

}  // namespace tessera::passes
