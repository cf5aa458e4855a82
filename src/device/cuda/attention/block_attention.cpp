#include "device/cuda/attention/block_attention.h"

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/attention/head_operands.h"
#include "device/cuda/codegen/generated_kernel.h"
#include "kernels/block_attention_layout.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int64_t kDrawnTogether = 4;  // keys of a query

void check(const AttentionProblem& problem, const GpuTraits& gpu) {
  refuse_unless_by_tensor_cores(problem, BlockAttentionLayout::widest, gpu);
  refuse_unless(!problem.dropout.has_value() || problem.keys % kDrawnTogether == 0,
                "dropout for {} keys, where multiples of {} are taken", problem.keys, kDrawnTogether);
}

std::string print_problem(const PlacedAttention& attention, int64_t row_tiles) {
  const AttentionProblem& problem = attention.problem;
  const AttentionProblem::Dropout dropout = problem.dropout.value_or(AttentionProblem::Dropout{});
  const std::string text = fmt::format(
      "#include \"{}.cuh\"\n"
      "using namespace tessera;\n"
      "struct Problem {{\n"
      "  using type = {};\n"
      "  static constexpr BlockAttentionLayout layout{{{}, {}, {}, {}}};\n"
      "  static constexpr int batch = {}, heads = {}, queries = {}, keys = {};\n"
      "  static constexpr float scale = {}, factor = {};\n"
      "  static constexpr bool causal = {}, has_bias = {}, has_key_lengths = {}, drops = {};\n"
      "  static constexpr uint32 stream = {}u, least = least_word({});\n",
      problem.gradient ? "block_attention_gradient" : "block_attention", device_type(problem.type),
      problem.queries, problem.keys, problem.width, row_tiles, problem.batch, problem.heads, problem.queries,
      problem.keys, float_literal(problem.scale), float_literal(1 / (1 - dropout.rate)), problem.causal,
      problem.bias.has_value(), problem.key_lengths, problem.dropout.has_value(),
      static_cast<uint32_t>(dropout.stream), float_literal(dropout.rate));
  return text + print_places(attention) + "};\n";
}

// A launch of blocks that have rows of each head.
struct Part {
  const char* function;
  int64_t blocks;  // of a head
  int64_t own;     // operands of a block
  bool own_queries;
  bool words;
};

GeneratedProgram print(const KernelRequest& request, const GpuTraits& gpu, int64_t row_tiles) {
  const PlacedAttention attention = read_attention(request);
  const AttentionProblem& problem = attention.problem;
  check(problem, gpu);
  constexpr int64_t kMostInRegisters = 64;  // of the width of two tiles
  refuse_unless(row_tiles == 1 || problem.width <= kMostInRegisters, "a width of {} for two tiles of rows",
                problem.width);
  refuse_unless_whole(attention);
  const BlockAttentionLayout layout{
      .queries = problem.queries, .keys = problem.keys, .width = problem.width, .row_tiles = row_tiles};
  PointerList pointers(request.node);
  add_pointers(pointers, attention);
  GeneratedProgram program;
  program.source = print_problem(attention, row_tiles);
  std::vector<Part> parts{{"block_attention", layout.query_blocks(), 1, true, false}};
  if (problem.gradient) {
    parts = {{"block_attention_query_gradient", layout.query_blocks(), 2, true, false},
             {"block_attention_key_gradient", layout.key_blocks(), 2, false, true}};
    constexpr int64_t kWordBytes = 4, kWordBits = 32;
    const int64_t products = problem.batch * problem.heads * problem.queries * kWordBytes;
    pointers.workspace("products", 0);
    program.workspace_bytes = products;
    if (problem.dropout.has_value()) {
      pointers.workspace("kept", products, "uint32");
      program.workspace_bytes += products * quotient_rounded_up(problem.keys, kWordBits);
    }
  }
  for (const Part& part : parts) {
    const int64_t bytes = layout.bytes(part.own, part.own_queries, problem.bias.has_value(), part.words);
    refuse_unless(bytes <= gpu.block_shared_bytes(1), "a block needs {} bytes of shared memory", bytes);
    // What three blocks of one tile of rows have in registers, and two of two.
    int blocks = row_tiles == 1 && problem.width <= kMostInRegisters ? 3 : 2;
    while (blocks > 1 && bytes > gpu.block_shared_bytes(blocks)) --blocks;
    Launch launch{.entry = fmt::format("run{}", program.launches.size()),
                  .blocks = problem.batch * problem.heads * part.blocks,
                  .threads = BlockAttentionLayout::threads,
                  .arguments = pointers.arguments(),
                  .shared_bytes = bytes};
    program.source += calling_entry(
        launch.entry, launch.threads, pointers,
        problem.gradient ? "BlockAttentionGradientPointers<Problem>" : "BlockAttentionPointers<Problem>",
        part.function, blocks);
    program.launches.push_back(std::move(launch));
  }
  return program;
}

}  // namespace

std::vector<KernelCandidate> block_attention_candidates(Context& context) {
  std::vector<KernelCandidate> result;
  for (const int64_t row_tiles : {1, 2}) {
    result.push_back(generated_candidate(row_tiles == 1 ? "block_attention" : "block_attention#wide", context,
                                         [row_tiles](const KernelRequest& request, const GpuTraits& gpu) {
                                           return print(request, gpu, row_tiles);
                                         }));
    result.back().only_tuned = row_tiles > 1;
  }
  return result;
}

bool is_attention_by_blocks(const Node& attention, const GpuTraits& gpu) {
  return backend::unless_refused([&] {
           check(attention_problem_of(attention), gpu);
           return true;
         })
      .has_value();
}

}  // namespace tessera::cuda
