#include "device/cuda/attention/few_query_attention.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/attention/head_operands.h"
#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int64_t kAccessBytes = 16;
constexpr int64_t kMostQueries = 8;     // which a lane has in registers
constexpr int kFirstWithClusters = 90;  // architecture
constexpr int64_t kMostSplits = 8;      // blocks of a cluster that every GPU takes
constexpr int64_t kLeastKeys = 32;      // of a block: fewer are not worth adding up

// Lanes that read a key together.
int64_t lanes_of(const AttentionProblem& problem) {
  return problem.width * static_cast<int64_t>(size_of(problem.type)) / kAccessBytes;
}

void check(const PlacedAttention& attention) {
  const AttentionProblem& problem = attention.problem;
  refuse_unless(!problem.gradient, "a gradient");
  refuse_unless(!problem.dropout.has_value(), "dropout of the weights");
  refuse_unless(is_half(problem.type) || problem.type == DataType::fp32, "operands of {}",
                to_string(problem.type));
  refuse_unless(problem.width == problem.value_width, "values of another width than keys");
  refuse_unless(problem.batch * problem.heads * problem.keys > 0, "a tensor without elements");
  refuse_unless(problem.queries > 0 && problem.queries <= kMostQueries,
                "{} queries, where up to {} are taken", problem.queries, kMostQueries);
  refuse_unless(!problem.causal, "queries that see keys in order");
  const int64_t lanes = lanes_of(problem);
  refuse_unless(lanes > 0 && lanes <= 32 && std::has_single_bit(static_cast<uint64_t>(lanes)) &&
                    lanes * kAccessBytes == problem.width * static_cast<int64_t>(size_of(problem.type)),
                "keys of a width of {}", problem.width);
  refuse_unless_whole(attention);
}

int64_t splits_of(const AttentionProblem& problem, const GpuTraits& gpu) {
  if (gpu.architecture < kFirstWithClusters) return 1;
  int64_t splits = 1;
  while (2 * splits <= kMostSplits && problem.keys >= 2 * splits * kLeastKeys &&
         problem.batch * problem.heads * splits < gpu.multiprocessors)
    splits *= 2;
  return splits;
}

GeneratedProgram print(const KernelRequest& request, const GpuTraits& gpu) {
  const PlacedAttention attention = read_attention(request);
  check(attention);
  const AttentionProblem& problem = attention.problem;
  const int64_t splits = splits_of(problem, gpu);
  const int64_t keys_at_once = kFewQueryThreads / lanes_of(problem);
  constexpr int64_t kMostTogether = 4;
  const int64_t together =
      std::min(quotient_rounded_up(quotient_rounded_up(problem.keys, splits), keys_at_once), kMostTogether);
  PointerList pointers(request.node);
  add_pointers(pointers, attention);
  GeneratedProgram program;
  program.source = fmt::format(
      "#include \"few_query_attention.cuh\"\nusing namespace tessera;\nstruct Problem {{\n"
      "  using Element = {};\n"
      "  static constexpr int batch = {}, heads = {}, queries = {}, keys = {}, width = {};\n"
      "  static constexpr int splits = {}, together = {};\n"
      "  static constexpr float scale = {};\n"
      "  static constexpr bool has_bias = {}, has_key_lengths = {};\n{}}};\n",
      device_type(problem.type), problem.batch, problem.heads, problem.queries, problem.keys, problem.width,
      splits, together, float_literal(problem.scale), problem.bias.has_value(), problem.key_lengths,
      print_places(attention));
  Launch run{.entry = "run",
             .blocks = problem.batch * problem.heads * splits,
             .threads = kFewQueryThreads,
             .arguments = pointers.arguments(),
             .cluster = static_cast<int>(splits)};
  program.source += calling_entry(run.entry, run.threads, pointers, "FewQueryPointers<Problem>",
                                  "few_query_attention", 0, Beginning::ahead);
  program.launches = {std::move(run)};
  return program;
}

}  // namespace

KernelCandidate few_query_candidate(Context& context) {
  return generated_candidate("few_query_attention", context, print);
}

}  // namespace tessera::cuda
