#include "device/cuda/matmul/matmul_problem.h"

#include <algorithm>
#include <initializer_list>

#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

Shape leading(const Shape& shape) {
  return {shape.begin(), shape.end() - 2};
}

// The step between matrices of an operand: 0 when there is one for all, else one a matrix of the result.
int64_t batch_stride(const Shape& own, const Shape& result) {
  const int64_t matrices = element_count(leading(own));
  if (matrices == 1) return 0;
  refuse_unless(matrices == element_count(leading(result)), "{} repeats some of its leading axes",
                to_string(own));
  return own[own.size() - 2] * own[own.size() - 1];
}

// As lt_product.cpp has them.
const std::initializer_list<std::string_view> kEpilogueActivations = {"relu", "gelu"};

bool is_epilogue_of_cublaslt(const Node& activation) {
  const auto* known = std::ranges::find(kEpilogueActivations, activation.operator_name());
  const Attributes& attributes = activation.attributes();
  const bool exact = attributes.contains("approximate") && !attributes.boolean("approximate");
  return known != kEpilogueActivations.end() && !exact;
}

void set_chain(MatmulProblem& problem, const Node& node, const backend::FusedChain& chain) {
  const backend::Epilogue epilogue = backend::read_epilogue(node, chain, kEpilogueActivations);
  problem.bias = epilogue.bias;
  problem.residual = epilogue.residual;
  if (epilogue.activation != nullptr) {
    problem.activation = epilogue.activation->operator_name();
    refuse_unless(is_epilogue_of_cublaslt(*epilogue.activation), "cuBLASLt knows only the approximate gelu");
  }
  refuse_unless(
      problem.type != DataType::fp64 || (!problem.bias.has_value() && epilogue.activation == nullptr),
      "no epilogue in fp64");
}

// What a norm before the product reads, where the node has that too.
const Value* normalized_from(const Node& node, const Value* a) {
  return backend::has_role(node, kNormalizedRole) ? backend::maker_of_role(node, kNormalizedRole).input(0)
                                                  : a;
}

}  // namespace

FusionPattern matmul_pattern() {
  return backend::contraction_pattern("matmul",
                                      {.takes_activation = is_epilogue_of_cublaslt, .ordered = true});
}

std::string MatmulProblem::key() const {
  return fmt::format(
      "{} {} of {} x {} x {}; transposed {:d} {:d}; strides {} {}; bias {:d}; residual {:d}; "
      "activation '{}'; tf32 {:d}; deterministic {:d}",
      to_string(type), batch, m, n, k, transpose_a, transpose_b, a_stride, b_stride, bias.has_value(),
      residual.has_value(), activation, tf32, deterministic);
}

MatmulProblem make_matmul_problem(const KernelRequest& request) {
  const Node& node = request.node;
  const backend::FusedChain chain = backend::read_chain(node);
  const Node& main = *chain.main;
  const Shape a = main.input(0)->type().static_shape();
  const Shape b = main.input(1)->type().static_shape();
  const Shape y = main.output()->type().static_shape();
  MatmulProblem problem;
  problem.type = main.output()->data_type();
  refuse_unless(is_floating(problem.type), "whole numbers");
  problem.transpose_a = main.attributes().boolean("transpose_a");
  problem.transpose_b = main.attributes().boolean("transpose_b");
  problem.m = y[y.size() - 2];
  problem.n = y[y.size() - 1];
  problem.k = a[a.size() - (problem.transpose_a ? 2 : 1)];
  problem.batch = element_count(leading(y));
  refuse_unless(problem.batch > 0 && problem.m > 0 && problem.n > 0 && problem.k > 0,
                "a matrix without elements");
  problem.a_stride = batch_stride(a, y);
  problem.b_stride = batch_stride(b, y);
  if (problem.batch > 1 && problem.b_stride == 0 && !problem.transpose_a && problem.a_stride != 0) {
    // One right-hand matrix for all: the rows of the whole batch are the rows of one product.
    problem.m *= problem.batch;
    problem.batch = 1;
  }
  problem.tf32 = request.tf32;
  problem.deterministic = request.deterministic;
  problem.a = backend::input_index(node, normalized_from(node, main.input(0)));
  problem.b = backend::input_index(node, main.input(1));
  set_chain(problem, node, chain);
  return problem;
}

GeneratedProgram plain_matmul(const Node& node, const GpuTraits& gpu) {
  const Shape y = node.output()->type().static_shape();
  const Shape a = node.input(0)->type().static_shape();
  const bool transpose_a = node.attributes().boolean("transpose_a");
  const bool transpose_b = node.attributes().boolean("transpose_b");
  const int64_t m = y[y.size() - 2];
  const int64_t n = y[y.size() - 1];
  const int64_t k = a[a.size() - (transpose_a ? 2 : 1)];
  std::string offsets;
  const Shape batch = leading(y);
  offsets += "    int64 rest = matrix, of_a = 0, of_b = 0;\n";
  const auto stride_of = [&](size_t input, size_t axis) -> int64_t {
    const Shape own = node.input(input)->type().static_shape();
    const size_t missing = y.size() - own.size();
    return axis < missing || own[axis - missing] == 1 ? 0 : row_major_strides(own)[axis - missing];
  };
  for (size_t axis = batch.size(); axis-- > 0;) {
    offsets += fmt::format("    of_a += rest % {0} * {1}; of_b += rest % {0} * {2}; rest /= {0};\n",
                           std::max<int64_t>(batch[axis], 1), stride_of(0, axis), stride_of(1, axis));
  }
  const std::string type = device_type(node.output()->data_type());
  const std::string statement = fmt::format(
      "  for_each_element<int64>({0}, [&](int64 element) {{\n"
      "    const int64 column = element % {1}, row = element / {1} % {2}, matrix = element / {1} / {2};\n{3}"
      "    Accumulator<{4}> sum = 0;\n"
      "    for (int64 k = 0; k < {5}; ++k) {{\n"
      "      sum += Accumulator<{4}>(widen(x0[of_a + {6}])) * widen(x1[of_b + {7}]);\n    }}\n"
      "    y0[element] = narrow<{4}>(sum);\n  }});",
      element_count(y), std::max<int64_t>(n, 1), std::max<int64_t>(m, 1), offsets, type, k,
      transpose_a ? fmt::format("k * {} + row", m) : fmt::format("row * {} + k", k),
      transpose_b ? fmt::format("column * {} + k", k) : fmt::format("k * {} + column", n));
  constexpr int kThreads = 256;
  return simple_program(node, "windows.cuh", statement, blocks_for(element_count(y), kThreads, gpu),
                        kThreads);
}

}  // namespace tessera::cuda
