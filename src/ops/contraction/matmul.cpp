#include "tessera/ops/functions.h"

#include "ops/contraction/factors.h"

namespace tessera::ops {
namespace {

SymbolicShape leading(const SymbolicShape& shape) {
  return {shape.begin(), shape.end() - 2};
}

// The extents of the last two axes, as multiplied.
struct Matrix {
  Dimension rows;
  Dimension columns;
};
Matrix matrix_of(const SymbolicShape& shape, bool transposed) {
  const Dimension& first = shape[shape.size() - 2];
  const Dimension& second = shape.back();
  return transposed ? Matrix{second, first} : Matrix{first, second};
}

std::vector<TensorType> infer_matmul(const InferenceCall& call) {
  const TensorType& a = call.input(0);
  const TensorType& b = call.input(1);
  call.require(a.rank() >= 2 && b.rank() >= 2, "both operands need at least two axes");
  const Matrix left = matrix_of(a.shape, call.attributes.boolean("transpose_a"));
  const Matrix right = matrix_of(b.shape, call.attributes.boolean("transpose_b"));
  call.require(left.columns == right.rows, "the inner extents differ: " + left.columns.to_string() +
                                               " columns of a, " + right.rows.to_string() + " rows of b");
  SymbolicShape shape = broadcast_shapes(leading(a.shape), leading(b.shape));
  shape.push_back(left.rows);
  shape.push_back(right.columns);
  return {{type_of_sums(call), std::move(shape)}};
}

// x with all axes but the last as one.
Value* flattened(Value* x) {
  const Dimension columns = x->shape().back();
  return reshape(x, {element_count(SymbolicShape{x->shape().begin(), x->shape().end() - 1}), columns});
}

// Gradients of y = A B: dA = dy B^T and dB = A^T dy, transposed once more where an operand is stored so, and
// summed over the axes along which it was broadcast.
std::vector<Value*> gradient_matmul(const GradientCall& call) {
  const bool transpose_a = call.node.attributes().boolean("transpose_a");
  const bool transpose_b = call.node.attributes().boolean("transpose_b");
  Value* a = call.input(0);
  Value* b = call.input(1);
  Value* dy = call.gradient();
  if (b->type().rank() == 2 && a->type().rank() > 2 && !transpose_a) {
    // One weight for all leading axes (a linear layer): they are rows of one product, and nothing is summed
    // twice. What is added to the gradient of a has its shape, and may be a kernel's with the product.
    Value* rows = flattened(dy);
    Value* da = matmul(dy, b, {.transpose_b = !transpose_b});
    Value* db = transpose_b ? matmul(rows, flattened(a), {.transpose_a = true})
                            : matmul(flattened(a), rows, {.transpose_a = true});
    return {da, db};
  }
  Value* da = transpose_a ? matmul(b, dy, {.transpose_a = transpose_b, .transpose_b = true})
                          : matmul(dy, b, {.transpose_b = !transpose_b});
  Value* db = transpose_b ? matmul(dy, a, {.transpose_a = true, .transpose_b = transpose_a})
                          : matmul(a, dy, {.transpose_a = !transpose_a});
  return {reduce_to_shape(da, a->shape()), reduce_to_shape(db, b->shape())};
}

double flops(const Node& node) {
  const Shape a = node.input(0)->type().static_shape();
  const int64_t depth = node.attributes().boolean("transpose_a") ? a[a.size() - 2] : a.back();
  return 2.0 * static_cast<double>(depth) * static_cast<double>(node.output()->type().element_count());
}

// Where the matrices of an operand start, for every matrix of the result.
std::vector<int64_t> matrix_offsets(const Shape& operand, const Shape& result) {
  const size_t axes = result.size() - 2;
  const size_t missing = result.size() - operand.size();
  const std::vector<int64_t> own = row_major_strides(operand);
  const Shape batch(result.begin(), result.end() - 2);
  std::vector<int64_t> offsets(static_cast<size_t>(element_count(batch)));
  for (size_t i = 0; i < offsets.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = axes; axis-- > 0;) {
      if (axis >= missing && operand[axis - missing] != 1)
        offsets[i] += rest % batch[axis] * own[axis - missing];
      rest /= batch[axis];
    }
  }
  return offsets;
}

void reference_matmul(const ReferenceCall& call) {
  const Tensor& a = *call.inputs[0];
  const Tensor& b = *call.inputs[1];
  Tensor& y = *call.outputs[0];
  const bool transpose_a = call.attributes().boolean("transpose_a");
  const bool transpose_b = call.attributes().boolean("transpose_b");
  const int64_t rows = y.shape()[y.shape().size() - 2];
  const int64_t columns = y.shape().back();
  const int64_t depth = transpose_a ? a.shape()[a.shape().size() - 2] : a.shape().back();
  const std::vector<double> left = a.to_doubles();
  const std::vector<double> right = b.to_doubles();
  const std::vector<int64_t> a_offsets = matrix_offsets(a.shape(), y.shape());
  const std::vector<int64_t> b_offsets = matrix_offsets(b.shape(), y.shape());
  for (size_t batch = 0; batch < a_offsets.size(); ++batch) {
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t i = a_offsets[batch] + (transpose_a ? k * rows + m : m * depth + k);
          const int64_t j = b_offsets[batch] + (transpose_b ? n * depth + k : k * columns + n);
          sum += left[static_cast<size_t>(i)] * right[static_cast<size_t>(j)];
        }
        y.set((static_cast<int64_t>(batch) * rows + m) * columns + n, sum);
      }
    }
  }
}

OperatorExample example_of_bytes(DataType a, DataType b) {
  return {.inputs = {{{3, 21}, -9, 9, a}, {{7, 21}, -9, 9, b}}, .attributes = {{"transpose_b", true}}};
}

OperatorExample example_matmul(Shape a, Shape b, bool transpose_a = false, bool transpose_b = false) {
  return {.inputs = {{std::move(a)}, {std::move(b)}},
          .attributes = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}};
}

const OperatorRegistration kRegistration({
    .name = "matmul",
    .documentation =
        "Matrix product [..., M, K] x [..., K, N] -> [..., M, N]. The leading axes broadcast. "
        "An operand marked transposed is stored as [..., K, M] or [..., N, K]. Of int8 and uint8, "
        "which may meet, the sums are int32, exactly, and must stay within its limits.",
    .operator_class = OperatorClass::contraction,
    .inputs = {{.name = "a", .types = kFactorTypes, .type_variable = ""},
               {.name = "b", .types = kFactorTypes, .type_variable = ""}},
    .attributes = {{"transpose_a", AttributeKind::boolean, false, "a is stored as [..., K, M]."},
                   {"transpose_b", AttributeKind::boolean, false, "b is stored as [..., N, K]."}},
    .outputs = {"y"},
    .infer = infer_matmul,
    .gradient = gradient_matmul,
    .flops = flops,
    .reference = reference_matmul,
    .examples = {example_matmul({3, 5}, {5, 7}), example_matmul({5, 3}, {5, 7}, true),
                 example_matmul({3, 5}, {7, 5}, false, true), example_matmul({5, 3}, {7, 5}, true, true),
                 example_matmul({1, 33}, {33, 1}), example_matmul({17, 1}, {1, 9}),
                 example_matmul({2, 3, 4}, {2, 4, 5}), example_matmul({2, 3, 4}, {4, 5}),
                 example_matmul({2, 3, 4}, {5, 4}, false, true), example_matmul({2, 4, 3}, {4, 5}, true),
                 example_matmul({3, 4}, {2, 4, 5}), example_matmul({2, 1, 3, 4}, {3, 5, 4}, false, true),
                 example_matmul({1, 4, 3}, {2, 3, 5, 4}, true, true),
                 example_of_bytes(DataType::uint8, DataType::int8),
                 example_of_bytes(DataType::int8, DataType::uint8),
                 example_of_bytes(DataType::uint8, DataType::uint8)},
});

}  // namespace
}  // namespace tessera::ops
