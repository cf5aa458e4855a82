#include "device/cuda/matmul/padded_matmul.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tessera/base/rounding.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/device/common/subgraph_kernel.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

#include "device/cuda/cluster/cluster_source.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/matmul/matmul_problem.h"
#include "device/cuda/runtime/peaks.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

// What the fast kernels of the Tensor Cores read and write at a time, and thus where rows have to begin.
constexpr int64_t kRowAlignment = 16;

// A product y [.., M, N] = a [.., M, K] b [.., K, N], and by how much its extents grow.
struct Padding {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t extra_m = 0;
  int64_t extra_n = 0;
  int64_t extra_k = 0;

  bool is_empty() const { return extra_m == 0 && extra_n == 0 && extra_k == 0; }
};

const Node& product_of(const Node& node) {
  return *backend::read_chain(node).main;
}

Padding padding_of(const Node& product) {
  const Shape a = product.input(0)->type().static_shape();
  const Shape y = product.output()->type().static_shape();
  Padding padding;
  padding.transpose_a = product.attributes().boolean("transpose_a");
  padding.transpose_b = product.attributes().boolean("transpose_b");
  padding.m = y[y.size() - 2];
  padding.n = y.back();
  padding.k = padding.transpose_a ? a[a.size() - 2] : a.back();
  const int64_t multiple = kRowAlignment / static_cast<int64_t>(size_of(product.output()->data_type()));
  const auto missing = [&](int64_t extent) { return round_up(extent, multiple) - extent; };
  // Which axes are the innermost of an operand or the result.
  if (padding.transpose_a) padding.extra_m = missing(padding.m);
  padding.extra_n = missing(padding.n);
  if (!padding.transpose_a || padding.transpose_b) padding.extra_k = missing(padding.k);
  return padding;
}

// x with zeros after its last rows and columns.
Value* pad_matrices(Value* x, int64_t rows, int64_t columns) {
  if (rows == 0 && columns == 0) return x;
  const auto rank = static_cast<size_t>(x->type().rank());
  std::vector<int64_t> high(rank, 0);
  high[rank - 1] = columns;
  if (rank > 1) high[rank - 2] = rows;
  return ops::pad(x, std::vector<int64_t>(rank, 0), high);
}

// An operand of the epilogue, which may broadcast along the rows.
Value* pad_operand(Value* x, const Padding& padding) {
  const Shape shape = x->type().static_shape();
  const bool has_rows = shape.size() > 1 && shape[shape.size() - 2] == padding.m;
  const bool has_columns = !shape.empty() && shape.back() == padding.n;
  return pad_matrices(x, has_rows ? padding.extra_m : 0, has_columns ? padding.extra_n : 0);
}

// The product, and the chain after it, over padded operands.
std::vector<Value*> pad_product(const Node& node, const std::vector<Value*>& inputs) {
  const Node& product = product_of(node);
  const Padding padding = padding_of(product);
  const auto operand = [&](size_t index, bool transposed, int64_t rows, int64_t columns) {
    if (transposed) std::swap(rows, columns);
    return pad_matrices(inputs[backend::input_index(node, product.input(index))], rows, columns);
  };
  Value* y = ops::matmul(operand(0, padding.transpose_a, padding.extra_m, padding.extra_k),
                         operand(1, padding.transpose_b, padding.extra_k, padding.extra_n),
                         {.transpose_a = padding.transpose_a, .transpose_b = padding.transpose_b});
  if (node.body() != nullptr) {
    ValueMapping mapping{{product.output(), y}};
    for (const auto& step : node.body()->nodes()) {
      if (step.get() == &product) continue;
      for (const Value* input : step->inputs()) {
        if (!mapping.contains(input))
          mapping[input] = pad_operand(inputs[backend::input_index(node, input)], padding);
      }
      copy_node(*step, y->graph(), mapping);
    }
    y = mapping.at(node.body()->outputs().front().value);
  }
  if (padding.extra_m == 0 && padding.extra_n == 0) return {y};
  const Shape result = node.output()->type().static_shape();
  return {ops::slice(y, std::vector<int64_t>(result.size(), 0), result)};
}

void refuse_unless_padding_helps(const KernelRequest& request) {
  const Node& product = product_of(request.node);
  const DataType type = product.output()->data_type();
  refuse_unless_multiplied(type, request.tf32);
  for (const Value* operand : product.inputs()) {
    backend::input_index(request.node, operand);
    refuse_unless(operand->data_type() == type, "operands of another type");
  }
  const Padding padding = padding_of(product);
  refuse_unless(element_count(product.output()->type().static_shape()) > 0 && padding.k > 0,
                "a matrix without elements");
  refuse_unless(!padding.is_empty(), "all rows are multiples of {} bytes", kRowAlignment);
}

double read_and_written(const Value& value) {
  return 2.0 * static_cast<double>(value.type().bytes());
}

// Bytes that are read and written for padded operands.
double padded_bytes(const Node& product, const Padding& padding) {
  double copied = 0;
  if (padding.extra_m > 0 || padding.extra_k > 0) copied += read_and_written(*product.input(0));
  if (padding.extra_n > 0 || padding.extra_k > 0) copied += read_and_written(*product.input(1));
  return copied;
}

// Bytes that are read and written beside the product. Rows at the end of a single matrix are cut off by a
// view.
double copied_bytes(const Node& node, const Padding& padding) {
  const Node& product = product_of(node);
  const bool cuts_columns =
      padding.extra_n > 0 || (padding.extra_m > 0 && product.output()->type().rank() > 2);
  double copied = padded_bytes(product, padding);
  if (cuts_columns) copied += read_and_written(*product.output());
  if (backend::read_chain(node).adds_whole_tensor()) copied += read_and_written(*product.output());
  return copied;
}

// Measured on an H100 in bf16, with cuBLASLt 13.1: aligned products run at up to 0.69 of the Tensor Cores'
// rate and others at 0.10 to 0.24 of it, whatever their shape. Bounds on the side of the latter, so that an
// estimate which says that padding pays is right. In TF32 and before Hopper nothing was measured: the tuner
// may find out.
bool is_sure_to_pay(const Node& product, const Padding& padding, double copied, const GpuTraits& gpu) {
  constexpr int kFirstMeasured = 90;
  constexpr double kShareOfUnaligned = 0.25;
  constexpr double kShareOfAligned = 0.6;
  constexpr double kShareOfCopies = 0.75;  // of the memory's bandwidth
  constexpr double kSecondsOfLaunches = 20e-6;
  const DataType type = product.output()->data_type();
  if (gpu.architecture < kFirstMeasured || !is_half(type)) return false;
  const std::map<Precision, double> rates = flops_per_second(gpu);
  if (padding.is_empty() || rates.empty()) return false;
  const double seconds = cost_of(product).flops / rates.at(Precision::fp16);
  const double saved = seconds / kShareOfUnaligned - seconds / kShareOfAligned;
  return saved > copied / (kShareOfCopies * gpu.bytes_per_second) + kSecondsOfLaunches;
}

bool is_sure_to_pay(const Node& node, const GpuTraits& gpu) {
  const Node& product = product_of(node);
  const Padding padding = padding_of(product);
  return is_sure_to_pay(product, padding, copied_bytes(node, padding), gpu);
}

}  // namespace

int64_t padded_columns(const Node& product, const GpuTraits& gpu) {
  const Padding padding = padding_of(product);
  const bool pays = is_sure_to_pay(product, padding, padded_bytes(product, padding), gpu);
  return pays ? padding.n + padding.extra_n : padding.n;
}

KernelCandidate padded_candidate(const Node& node, Context& context) {
  PassTarget target;
  target.patterns = {matmul_pattern()};
  target.clusters_take = clusters_take;
  target.reductions_per_cluster = kReductionsOfACluster;
  KernelCandidate candidate = backend::rule_candidate(
      "padded", pad_product, [&context](const Node& inner) { return cuda_candidates(inner, context); },
      target, refuse_unless_padding_helps);
  candidate.only_tuned =
      !backend::unless_refused([&] { return is_sure_to_pay(node, context.traits()); }).value_or(false);
  return candidate;
}

}  // namespace tessera::cuda
