// A product of rows that have a single one each, as exporters of JAX and TensorFlow write a look-up, becomes
// the look-up: the rows are not made, and nothing is multiplied.
#include <optional>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

// Whether the value is 0, 1, ... up to `count` along the last axis, and the same along all others.
bool counts_along_rows(const Value* value, int64_t count) {
  const Node* constant = producer_of(value, "constant");
  if (constant == nullptr) return false;
  const Tensor& tensor = constant->attributes().tensor("value");
  if (tensor.size() != count || tensor.shape().empty() || tensor.shape().back() != count) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (tensor.at(i) != static_cast<double>(i)) return false;
  }
  return true;
}

// [..., 1], where the value is 1 in the column that they name and 0 in all others, and nothing else reads it.
Value* indices_of(const Value* rows, const Node& reader) {
  const Node* cast = producer_of(rows, "cast");
  if (cast == nullptr || sole_reader(rows) != &reader) return nullptr;
  const Node* equal = producer_of(cast->input(0), "equal");
  const Dimension columns = rows->shape().back();
  if (equal == nullptr || sole_reader(cast->input(0)) != cast || !columns.is_static()) return nullptr;
  SymbolicShape wanted = rows->shape();
  wanted.back() = 1;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    Value* indices = equal->input(side);
    const bool are_indices =
        indices->data_type() == DataType::int32 || indices->data_type() == DataType::int64;
    if (are_indices && indices->shape() == wanted &&
        counts_along_rows(equal->input(1 - side), columns.value()))
      return indices;
  }
  return nullptr;
}

// The product of such rows and a matrix; null where it is none.
Value* look_up(const Node& product) {
  if (product.operator_name() != "matmul" || product.inputs().size() != 2) return nullptr;
  Value* const table = product.input(1);
  if (product.attributes().boolean("transpose_a") || product.attributes().boolean("transpose_b") ||
      table->shape().size() != 2 || product.input(0)->shape().size() < 2) {
    return nullptr;
  }
  Value* const indices = indices_of(product.input(0), product);
  if (indices == nullptr) return nullptr;
  // An index that names no row gives zeros.
  const auto last = static_cast<double>(table->shape().front().value() - 1);
  Value* const named =
      ops::minimum(ops::maximum(indices, ops::constant_like(indices, 0)), ops::constant_like(indices, last));
  SymbolicShape rows = indices->shape();
  rows.pop_back();
  Value* const found = ops::gather(table, ops::reshape(named, rows));
  return ops::multiply(found, ops::cast(ops::equal(named, indices), found->data_type()));
}

}  // namespace

bool recognize_look_ups(Graph& graph, const PassContext& /*context*/) {
  bool changed = false;
  for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
    Node* node = (position++)->get();
    const InsertionPoint here(graph, node);
    if (Value* found = look_up(*node)) {
      graph.replace_all_uses(node->output(), found);
      graph.erase(node);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tessera::passes
