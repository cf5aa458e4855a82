// Splits what all ranks add up together, whole or each its part, into buckets that travel one by one, in the
// order in which they are made: gradients go to the other ranks while those of earlier layers are still
// computed (PyTorch's DistributedDataParallel; Li et al., "PyTorch Distributed", 2020). The first bucket is
// small, for the way to be used soon, and so is the last, for nothing is left to compute beside it.
//
// Parts that are gathered again travel in buckets as well: those of the first parameters while the last ones
// are still added up and updated.
//
// Each element is reduced over the ranks as before: results have the same bits where the communicator's order
// of summation does not depend on an element's place.
#include <algorithm>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/readiness.h"

#include "passes/passes.h"
#include "passes/reductions.h"

namespace tessera::passes {
namespace {

constexpr int64_t kSmallShare = 8;  // of a bucket, the first and the last one

// Of inputs of a collective, by their numbers.
using Bucket = std::vector<size_t>;

int64_t bytes_of(const Node& node, const Bucket& bucket) {
  int64_t bytes = 0;
  for (const size_t i : bucket) bytes += node.input(i)->type().bytes();
  return bytes;
}

// From the one that is ready first on. None holds more than `bytes`, but for inputs that do themselves.
std::vector<Bucket> buckets_of(const Node& node, int64_t bytes, const Readiness& readiness) {
  Bucket order;
  for (size_t i = 0; i < node.inputs().size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return readiness.of(*node.input(a)) < readiness.of(*node.input(b));
  });
  // From the end, so that what is left over makes the first one smaller.
  std::vector<Bucket> buckets;
  int64_t left = bytes / kSmallShare;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    const int64_t own = node.input(*i)->type().bytes();
    if (buckets.empty() || (own > left && !buckets.back().empty())) {
      left = buckets.empty() ? bytes / kSmallShare : bytes;
      buckets.emplace_back();
    }
    buckets.back().push_back(*i);
    left -= own;
  }
  for (Bucket& bucket : buckets) std::reverse(bucket.begin(), bucket.end());
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

// Its first inputs as a bucket of their own, where there are more.
void split_first(const Node& node, int64_t bytes, std::vector<Bucket>& buckets) {
  if (bytes_of(node, buckets.front()) <= bytes / kSmallShare || buckets.size() == 1) return;
  Bucket& whole = buckets.front();
  int64_t taken = 0;
  auto end = whole.begin();
  while (end != whole.end() &&
         (end == whole.begin() || taken + node.input(*end)->type().bytes() <= bytes / kSmallShare))
    taken += node.input(*end++)->type().bytes();
  if (end == whole.end()) return;
  Bucket rest(end, whole.end());
  whole.erase(end, whole.end());
  buckets.insert(buckets.begin() + 1, std::move(rest));
}

void split(Graph& graph, Node* node, const std::vector<Bucket>& buckets) {
  InsertionPoint here(graph, node);
  for (const Bucket& bucket : buckets) {
    std::vector<Value*> inputs;
    for (const size_t i : bucket) inputs.push_back(node->input(i));
    const Node* part = ops::apply(node->operator_name(), inputs, node->attributes());
    for (size_t i = 0; i < bucket.size(); ++i)
      graph.replace_all_uses(node->output(bucket[i]), part->outputs()[i].get());
  }
  graph.erase(node);
}

}  // namespace

bool bucket_reductions(Graph& graph, const PassContext& context) {
  const int64_t bytes = context.options.bucket_bytes.value_or(context.target.bucket_bytes);
  if (bytes == 0) return false;
  bool changed = false;
  for (Node* node : sized_collectives(graph)) {
    if (node->inputs().size() == 1) continue;
    std::vector<Bucket> buckets = buckets_of(*node, bytes, Readiness(graph));
    split_first(*node, bytes, buckets);
    if (buckets.size() == 1) continue;
    split(graph, node, buckets);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
