// MatMul, Gemm.
#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

// A factor; integers are multiplied in fp64, whose sums are exact up to 2^53.
Value* factor(LowerCall& call, size_t operand) {
  Value* value = call.operand(operand);
  return is_floating(value->data_type()) ? value : ops::cast(value, DataType::fp64);
}

// A vector stands for a matrix of one row on the left, of one column on the right.
void lower_matmul(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* a = factor(call, 0);
  Value* b = factor(call, 1);
  const bool is_row = a->type().rank() == 1;
  const bool is_column = b->type().rank() == 1;
  if (is_row) a = unsqueeze(a, {0});
  if (is_column) b = unsqueeze(b, {1});
  Value* y = ops::matmul(a, b);
  const int64_t rank = y->type().rank();
  std::vector<int64_t> dropped;
  if (is_row) dropped.push_back(rank - 2);
  if (is_column) dropped.push_back(rank - 1);
  y = squeeze(y, dropped);
  call.result(0, ops::cast(y, type));
}

void lower_gemm(LowerCall& call) {
  const DataType type = call.type(0).data_type;
  Value* a = factor(call, 0);
  Value* b = factor(call, 1);
  Value* y = ops::matmul(a, b, {call.integer("transA", 0) != 0, call.integer("transB", 0) != 0});
  const double alpha = call.real("alpha", 1);
  const double beta = call.real("beta", 1);
  if (alpha != 1) y = ops::multiply(y, alpha);
  if (call.has(2) && beta != 0) {
    Value* c = ops::cast(call.operand(2), y->data_type());
    y = ops::add(y, beta == 1 ? c : ops::multiply(c, beta));
  }
  call.result(0, ops::cast(y, type));
}

const RuleRegistrations kRegistration{
    {.name = "MatMul", .lower = lower_matmul},
    {.name = "Gemm", .lower = lower_gemm},
};

}  // namespace
}  // namespace tessera::onnx
