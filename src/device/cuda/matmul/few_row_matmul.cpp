#include "device/cuda/matmul/few_row_matmul.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/residual_layer_norm.h"
#include "tessera/device/common/roles.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/fuse.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/codegen/partial_sums.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/matmul/matmul_problem.h"
#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int64_t kMostRows = 8;
constexpr int64_t kAccessBytes = 16;
constexpr int64_t kMostAccesses = 16;  // of a lane that are under way at a time
// More would leave no room for the next launch, which begins to read its matrix meanwhile.
constexpr int64_t kMostSharedBytes = int64_t{32} << 10;

int64_t bytes_of_rows(DataType type, int64_t rows, int64_t depth) {
  return rows * depth * static_cast<int64_t>(size_of(type));
}

// Also before there is a kernel to ask for, where patterns look for it.
bool takes(const Node& product, bool tf32) {
  if (product.attributes().boolean("transpose_a") || !product.attributes().boolean("transpose_b"))
    return false;
  const SymbolicShape& a = product.input(0)->shape();
  const SymbolicShape& b = product.input(1)->shape();
  const DataType type = product.output()->data_type();
  if (b.size() != 2 || !((type == DataType::fp32 && !tf32) || is_half(type))) return false;
  if (!product.input(0)->type().is_static() || !product.input(1)->type().is_static()) return false;
  const int64_t depth = a.back().value();
  const int64_t rows = depth == 0 ? 0 : product.input(0)->type().element_count() / depth;
  return rows > 0 && rows <= kMostRows && b[0].value() > 0 &&
         depth * static_cast<int64_t>(size_of(type)) % kAccessBytes == 0 &&
         bytes_of_rows(type, rows, depth) <= kMostSharedBytes;
}

// How a product is shared out: kernels/few_row_product.cuh.
struct RowPlan {
  int64_t own_columns = 1;
  int64_t together = 1;
  int64_t blocks = 0;

  RowPlan(const MatmulProblem& problem, const GpuTraits& gpu) {
    constexpr int64_t kWarps = kFewRowThreads / 32, kWarpBytes = 32 * kAccessBytes;
    // The more columns, the fewer blocks read and normalize the rows; but most multiprocessors have one.
    constexpr double kLeastBlocks = 0.7;
    constexpr int64_t kMostColumns = 4;
    const int64_t accesses = quotient_rounded_up(bytes_of_rows(problem.type, 1, problem.k), kWarpBytes);
    const auto blocks_of = [&](int64_t columns) { return quotient_rounded_up(problem.n, columns * kWarps); };
    const auto fits = [&](int64_t columns) {
      return columns <= kMostColumns && columns * accesses <= kMostAccesses &&
             static_cast<double>(blocks_of(columns)) >= kLeastBlocks * gpu.multiprocessors;
    };
    while (fits(2 * own_columns)) own_columns *= 2;
    together = std::min(accesses, kMostAccesses / own_columns);
    blocks = blocks_of(own_columns);
  }
};

std::string activation_text(const std::string& activation) {
  if (activation == "relu") return "op_relu(x)";
  if (activation == "gelu") return "gelu_by_tanh(x)";
  return "x";
}

GeneratedProgram print_program(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const Node& product = *backend::read_chain(node).main;
  const MatmulProblem problem = make_matmul_problem(request);
  refuse_unless(takes(product, request.tf32),
                "products in TF32, more than {} rows, a matrix that is not stored by columns, or a depth "
                "that is no multiple of {} bytes or too much",
                kMostRows, kAccessBytes);
  for (const Value* operand : product.inputs())
    refuse_unless(operand->data_type() == problem.type, "operands of another type");
  const Node* norm =
      backend::has_role(node, kNormalizedRole) ? &backend::maker_of_role(node, kNormalizedRole) : nullptr;
  const RowPlan plan(problem, gpu);
  PointerList pointers(node);
  bool ahead = true;
  const auto constant = [&](std::string_view field, std::optional<size_t> place) {
    pointers.input(field, place);
    if (place.has_value()) ahead = ahead && request.frozen_inputs[*place];
  };
  pointers.input("a", problem.a);
  constant("b", problem.b);
  constant("bias", problem.bias);
  pointers.input("residual", problem.residual);
  if (norm != nullptr) {
    constant("scale", backend::input_index(node, norm->input(1)));
    if (norm->operand(2) != nullptr) constant("shift", backend::input_index(node, norm->operand(2)));
  }
  pointers.output("y", 0);
  GeneratedProgram program;
  program.source = fmt::format(
      "#include \"few_row_product.cuh\"\nusing namespace tessera;\nstruct Problem {{\n"
      "  using Element = {};\n"
      "  static constexpr int rows = {}, columns = {}, depth = {}, own_columns = {}, together = {};\n"
      "  static constexpr bool ahead = {}, normalizes = {}, centered = {}, bias = {}, residual = {};\n"
      "  static constexpr float epsilon = {};\n"
      "  static __device__ float end(float x) {{ return {}; }}\n}};\n",
      device_type(problem.type), problem.m, problem.n, problem.k, plan.own_columns, plan.together, ahead,
      norm != nullptr, norm != nullptr && norm->attributes().boolean("centered"), problem.bias.has_value(),
      problem.residual.has_value(), float_literal(norm != nullptr ? norm->attributes().real("epsilon") : 0),
      activation_text(problem.activation));
  add_run(program, pointers, "FewRowPointers<Problem>", "few_row_product", plan.blocks,
          bytes_of_rows(problem.type, problem.m, problem.k), kFewRowThreads,
          ahead ? Beginning::ahead : Beginning::wait);
  return program;
}

std::optional<FusionMatch> match_normalized(const FusionPattern& products, Node& product, bool tf32) {
  Value* normalized = product.input(0);
  Node* norm = producer_of(normalized, "layer_norm");
  if (norm == nullptr || !takes(product, tf32) || !backend::is_over_last_axis(*norm) ||
      normalized != norm->output(0) || sole_reader(normalized) != &product ||
      norm->input(0)->data_type() != normalized->data_type())
    return std::nullopt;
  std::optional<FusionMatch> match = products.match(product);
  if (!match.has_value()) {
    match = FusionMatch{.members = {&product}, .outputs = {product.output()}, .roles = {}};
    match->add_roles_of(product);
  }
  match->members.insert(match->members.begin(), norm);
  if (visible_values(match->members) != match->outputs) return std::nullopt;  // statistics that are read
  match->add_role(kNormalizedRole, normalized);
  return match;
}

std::vector<KernelCandidate> normalized(const Node&, Context& context) {
  return {few_row_candidate(context)};
}

const CudaKernelRegistration kNormalizedMatmul({.key = "fused:normalized_matmul", .candidates = normalized});

}  // namespace

bool has_few_rows(const Node& node) {
  return takes(*backend::read_chain(node).main, false);
}

KernelCandidate few_row_candidate(Context& context) {
  return generated_candidate("few_row_matmul", context, print_program);
}

FusionPattern normalized_matmul_pattern(bool tf32) {
  FusionPattern products = matmul_pattern();
  FusionPattern pattern{.kind = "normalized_matmul", .anchor = "matmul", .roles = products.roles};
  pattern.roles.emplace_back(kNormalizedRole);
  pattern.match = [products = std::move(products), tf32](Node& product) {
    return match_normalized(products, product, tf32);
  };
  return pattern;
}

}  // namespace tessera::cuda
