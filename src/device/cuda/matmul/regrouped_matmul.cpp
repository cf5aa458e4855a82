#include "device/cuda/matmul/regrouped_matmul.h"

#include <algorithm>
#include <vector>

#include "tessera/base/permutation.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/subgraph_kernel.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "device/cuda/cluster/cluster_source.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

Shape leading(const Value& matrices) {
  const Shape shape = matrices.type().static_shape();
  return {shape.begin(), shape.end() - 2};
}

// With ones before its axes, so that it has those of the result.
Shape aligned(const Shape& own, size_t rank) {
  Shape result(rank - own.size(), 1);
  result.insert(result.end(), own.begin(), own.end());
  return result;
}

// One matrix for all, or one for each: what a call of cuBLASLt describes.
bool is_regular(const Shape& own, const Shape& result) {
  const int64_t count = element_count(own);
  return count == 1 || count == element_count(result);
}

Value* reshaped(Value* x, const Shape& leading, int64_t rows, int64_t columns) {
  Shape shape = leading;
  shape.insert(shape.end(), {rows, columns});
  return ops::reshape(x, to_symbolic(shape));
}

// x with all leading axes of the result, in memory.
Value* repeated(Value* x, const Shape& result) {
  const Shape own = x->type().static_shape();
  Shape shape = result;
  shape.insert(shape.end(), own.end() - 2, own.end());
  return ops::broadcast_to(x, to_symbolic(shape));
}

// The leading axes of a product in which b repeats some and a none.
struct Grouping {
  std::vector<int64_t> order;  // first those that both have, then those that b repeats
  Shape kept;
  Shape repeated;

  Grouping(const Shape& b, const Shape& result) {
    std::vector<int64_t> later;
    for (size_t axis = 0; axis < result.size(); ++axis) {
      const bool repeats = b[axis] != result[axis];
      (repeats ? later : order).push_back(static_cast<int64_t>(axis));
      (repeats ? repeated : kept).push_back(result[axis]);
    }
    order.insert(order.end(), later.begin(), later.end());
  }

  // With the axes of a matrix after them.
  std::vector<int64_t> permutation(bool transposes) const {
    std::vector<int64_t> result = order;
    const auto rows = static_cast<int64_t>(order.size());
    result.insert(result.end(), {transposes ? rows + 1 : rows, transposes ? rows : rows + 1});
    return result;
  }
};

Value* regrouped(const Node& product, Value* a, Value* b) {
  const Shape y = product.output()->type().static_shape();
  const Shape all = leading(*product.output());
  const int64_t rows = y[y.size() - 2];
  const Shape of_b = aligned(leading(*b), all.size());
  const Grouping grouping(of_b, all);
  const bool transpose_a = product.attributes().boolean("transpose_a");
  const bool transpose_b = product.attributes().boolean("transpose_b");
  const Shape matrix = b->type().static_shape();
  const int64_t depth = matrix[matrix.size() - (transpose_b ? 1 : 2)];
  Value* side_by_side = reshaped(ops::transpose(a, grouping.permutation(transpose_a)), grouping.kept,
                                 element_count(grouping.repeated) * rows, depth);
  Value* weights = reshaped(b, grouping.kept, matrix[matrix.size() - 2], matrix.back());
  Value* made = ops::matmul(side_by_side, weights, {.transpose_b = transpose_b});
  Shape apart = grouping.kept;
  apart.insert(apart.end(), grouping.repeated.begin(), grouping.repeated.end());
  return ops::transpose(reshaped(made, apart, rows, y.back()),
                        inverse_permutation(grouping.permutation(false)));
}

std::vector<Value*> expand(const Node& product, const std::vector<Value*>& inputs) {
  const Shape all = leading(*product.output());
  if (leading(*inputs[0]) == all) return {regrouped(product, inputs[0], inputs[1])};
  return {ops::matmul(repeated(inputs[0], all), repeated(inputs[1], all),
                      {.transpose_a = product.attributes().boolean("transpose_a"),
                       .transpose_b = product.attributes().boolean("transpose_b")})};
}

void check(const KernelRequest& request) {
  const Node& product = request.node;
  backend::refuse_unless(product.operator_name() == "matmul" && is_floating(product.output()->data_type()),
                         "no product of numbers with a point");
  backend::refuse_unless(element_count(product.output()->type().static_shape()) > 0,
                         "a matrix without elements");
  const Shape all = leading(*product.output());
  const bool regular = std::ranges::all_of(
      product.inputs(), [&](const Value* operand) { return is_regular(leading(*operand), all); });
  backend::refuse_unless(!regular, "its operands repeat no axes, or all");
}

}  // namespace

KernelCandidate regrouped_candidate(Context& context) {
  PassTarget target;
  target.clusters_take = clusters_take;
  target.reductions_per_cluster = kReductionsOfACluster;
  return backend::rule_candidate(
      "regrouped", expand, [&context](const Node& inner) { return cuda_candidates(inner, context); }, target,
      check);
}

}  // namespace tessera::cuda
