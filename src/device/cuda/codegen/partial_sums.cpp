#include "device/cuda/codegen/partial_sums.h"

#include <fmt/format.h>

#include "tessera/base/rounding.h"

#include "kernels/block_sizes.h"

namespace tessera::cuda {

void add_run(GeneratedProgram& program, const PointerList& pointers, const std::string& structure,
             std::string_view function, int64_t blocks, int64_t shared_bytes, int threads,
             Beginning beginning) {
  Launch launch{.entry = "run", .blocks = blocks, .threads = threads, .arguments = pointers.arguments()};
  launch.shared_bytes = shared_bytes;
  program.source += calling_entry("run", threads, pointers, structure, function, 1, beginning);
  program.launches.push_back(std::move(launch));
}

void add_combine(GeneratedProgram& program, const Node& node, const std::vector<Combination>& all,
                 int64_t chunks) {
  constexpr int64_t kMany = int64_t{1} << 15;
  PointerList pointers(node);
  Launch launch{.entry = "combine", .threads = kCombineThreads, .arguments = {}};
  std::string text;
  for (const Combination& own : all) {
    const bool many = own.results >= kMany;
    const int64_t blocks =
        quotient_rounded_up(own.results, int64_t{many ? kCombineThreads : kCombineResults});
    text += fmt::format(
        "  if (block >= 0 && block < {}) combine_chunks{}<Sum>(block, {}, {}, {}, 1.0, {});\n"
        "  block -= {};\n",
        blocks, many ? "_of_many" : "", pointers.workspace(own.offset), own.results, chunks,
        pointers.output(own.output), blocks);
    launch.blocks += blocks;
  }
  launch.arguments = pointers.arguments();
  program.source += entry_text("combine", kCombineThreads, pointers.parameters(),
                               "  int block = static_cast<int>(blockIdx.x);\n" + text);
  program.launches.push_back(std::move(launch));
}

}  // namespace tessera::cuda
