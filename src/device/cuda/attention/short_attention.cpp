#include "device/cuda/attention/short_attention.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

#include "device/cuda/attention/head_operands.h"
#include "device/cuda/codegen/generated_kernel.h"
#include "kernels/short_attention_layout.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

void check(const PlacedAttention& attention, const GpuTraits& gpu) {
  const AttentionProblem& problem = attention.problem;
  refuse_unless_by_tensor_cores(problem, ShortAttentionLayout::widest, gpu);
  refuse_unless(!problem.dropout.has_value(), "dropout of the weights");
  for (const int64_t rows : {problem.queries, problem.keys}) {
    refuse_unless(rows > 0 && rows <= ShortAttentionLayout::longest, "{} rows, where up to {} are taken",
                  rows, ShortAttentionLayout::longest);
  }
  refuse_unless_whole(attention);
}

ShortAttentionLayout layout_of(const AttentionProblem& problem) {
  return {
      .queries = problem.queries, .keys = problem.keys, .width = problem.width, .gradient = problem.gradient};
}

// So many of a multiprocessor as its shared memory holds: the reads of some hide the products of others.
int blocks_of(const ShortAttentionLayout& layout, const GpuTraits& gpu) {
  int blocks = 4;
  while (blocks > 1 && layout.bytes() > gpu.block_shared_bytes(blocks)) --blocks;
  refuse_unless(layout.bytes() <= gpu.block_shared_bytes(blocks), "a head needs {} bytes of shared memory",
                layout.bytes());
  return blocks;
}

std::string print_problem(const PlacedAttention& attention) {
  const AttentionProblem& problem = attention.problem;
  const std::string text = fmt::format(
      "#include \"short_attention.cuh\"\n"
      "using namespace tessera;\n"
      "struct Problem {{\n"
      "  using type = {};\n"
      "  static constexpr ShortAttentionLayout layout{{{}, {}, {}, {}}};\n"
      "  static constexpr int batch = {}, heads = {}, keys = {};\n"
      "  static constexpr float scale = {};\n"
      "  static constexpr bool causal = {}, has_bias = {}, has_key_lengths = {};\n",
      device_type(problem.type), problem.queries, problem.keys, problem.width, problem.gradient,
      problem.batch, problem.heads, problem.keys, float_literal(problem.scale), problem.causal,
      problem.bias.has_value(), problem.key_lengths);
  return text + print_places(attention) + "};\n";
}

GeneratedProgram print(const KernelRequest& request, const GpuTraits& gpu) {
  const PlacedAttention attention = read_attention(request);
  check(attention, gpu);
  const AttentionProblem& problem = attention.problem;
  const ShortAttentionLayout layout = layout_of(problem);
  PointerList pointers(request.node);
  add_pointers(pointers, attention);
  Launch run{.entry = "run",
             .blocks = quotient_rounded_up(problem.batch * problem.heads, int64_t{layout.heads()}),
             .threads = static_cast<int>(layout.threads()),
             .arguments = pointers.arguments(),
             .shared_bytes = layout.bytes()};
  GeneratedProgram program;
  program.source =
      print_problem(attention) +
      calling_entry(
          run.entry, run.threads, pointers,
          problem.gradient ? "ShortAttentionGradientPointers<Problem>" : "ShortAttentionPointers<Problem>",
          problem.gradient ? "short_attention_gradient" : "short_attention", blocks_of(layout, gpu));
  program.launches = {std::move(run)};
  return program;
}

}  // namespace

KernelCandidate short_attention_candidate(Context& context) {
  return generated_candidate("short_attention", context, print);
}

}  // namespace tessera::cuda
