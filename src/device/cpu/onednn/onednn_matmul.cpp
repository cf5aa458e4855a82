// Matrix products, batched, with transposes as strides; plain and with what follows in a fused node.
#include <algorithm>

#include "device/cpu/bytes/byte_matmul.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/panels/panel_matmul.h"

namespace tessera::cpu {
namespace {

using dnnl::memory;

struct Operand {
  memory::dims dims;
  memory::dims strides;
};

// `rank` axes, the last two as multiplied; axes that the operand lacks are ones.
Operand matrix_operand(const Shape& shape, size_t rank, bool transposed) {
  Operand operand;
  operand.dims.assign(rank - shape.size(), 1);
  operand.dims.insert(operand.dims.end(), shape.begin(), shape.end());
  operand.strides.assign(rank, 1);
  for (size_t axis = rank; axis-- > 1;)
    operand.strides[axis - 1] = operand.strides[axis] * operand.dims[axis];
  if (transposed) {
    std::swap(operand.dims[rank - 1], operand.dims[rank - 2]);
    std::swap(operand.strides[rank - 1], operand.strides[rank - 2]);
  }
  return operand;
}

// One weight for all leading axes of a row-major operand: its rows are one matrix.
bool is_one_product(const Shape& a, const Shape& b, bool transpose_a) {
  return !transpose_a && a.size() > 2 && element_count(b) == b[b.size() - 1] * b[b.size() - 2];
}

OnednnPlan plan_matmul(const KernelRequest& request) {
  const Node& node = request.node;
  const FusedChain chain = read_chain(node);
  const Node& main = *chain.main;
  Shape a = main.input(0)->type().static_shape();
  Shape b = main.input(1)->type().static_shape();
  Shape y = main.output()->type().static_shape();
  const bool transpose_a = main.attributes().boolean("transpose_a");
  const bool transpose_b = main.attributes().boolean("transpose_b");
  refuse_unless(element_count(a) > 0 && element_count(b) > 0 && element_count(y) > 0,
                "a tensor without elements");
  if (is_one_product(a, b, transpose_a)) {
    y = {element_count(y) / y.back(), y.back()};
    a = {element_count(a) / a.back(), a.back()};
    b = {b[b.size() - 2], b.back()};
  }
  refuse_unless(y.size() <= 6, "{} axes", y.size());
  const bool whole = !is_floating(main.output()->data_type());
  if (whole)
    refuse_inexact_sums(main.input(0)->data_type(), main.input(1)->data_type(),
                        transpose_a ? a[a.size() - 2] : a.back());
  const memory::data_type stored = onednn_type(main.output()->data_type());
  const memory::data_type type = whole ? stored : compute_type(main.output()->data_type());
  const memory::data_type left_stored = onednn_type(main.input(0)->data_type());
  const memory::data_type right_stored = onednn_type(main.input(1)->data_type());
  const memory::data_type left_type = whole ? left_stored : type;
  const memory::data_type right_type = whole ? right_stored : type;
  const Operand left = matrix_operand(a, y.size(), transpose_a);
  const Operand right = matrix_operand(b, y.size(), transpose_b);

  OnednnPlan plan;
  dnnl::primitive_attr attributes = default_attributes();
  const memory::desc result = dense(y, type);
  append_post_operations(node, chain, result, y.size() - 1, attributes, plan.operands);
  memory::dims bias_dims(y.size(), 1);
  bias_dims.back() = y.back();
  memory::desc bias;
  if (chain.bias != nullptr) bias = dense(bias_dims, type);
  const size_t right_index = input_index(node, main.input(1));
  const bool pack = is_frozen_input(request, right_index);
  const dnnl::matmul::primitive_desc descriptor(
      onednn_engine(), strided(left.dims, left_type, left.strides),
      pack ? any_layout(right.dims, right_type) : strided(right.dims, right_type, right.strides), bias,
      result, attributes);
  plan.descriptor = descriptor;
  plan.operands.push_back({DNNL_ARG_SRC, false, input_index(node, main.input(0)),
                           strided(left.dims, left_stored, left.strides), descriptor.src_desc()});
  plan.operands.push_back({DNNL_ARG_WEIGHTS, false, right_index,
                           strided(right.dims, right_stored, right.strides), descriptor.weights_desc()});
  if (chain.bias != nullptr) {
    plan.operands.push_back({DNNL_ARG_BIAS, false, input_index(node, chain.bias), dense(bias_dims, stored),
                             descriptor.bias_desc()});
  }
  plan.operands.push_back({DNNL_ARG_DST, true, 0, dense(y, stored), descriptor.dst_desc()});
  return plan;
}

std::vector<KernelCandidate> candidates(const Node&) {
  return {panel_matmul_candidate(), onednn_candidate("onednn.matmul", plan_matmul), byte_matmul_candidate()};
}

const CpuKernelRegistration kMatmul({"matmul", candidates});
const CpuKernelRegistration kFusedMatmul({"fused:matmul", candidates});

}  // namespace
}  // namespace tessera::cpu
