#include "device/cuda/codegen/partial_sums.h"

#include <fmt/format.h>

#include "tessera/base/rounding.h"

namespace tessera::cuda {

void add_run(GeneratedProgram& program, const PointerList& pointers, const std::string& structure,
             std::string_view function, const std::vector<int64_t>& workspace, int64_t blocks,
             int64_t shared_bytes, int threads) {
  Launch launch{.entry = "run", .blocks = blocks, .threads = threads, .arguments = pointers.arguments()};
  launch.shared_bytes = shared_bytes;
  std::string parameters = pointers.parameters(), fields = pointers.fields();
  for (size_t n = 0; n < workspace.size(); ++n) {
    launch.arguments.push_back({Argument::Kind::workspace, workspace[n]});
    parameters += fmt::format(", float* parts{}", n);
    fields += fmt::format(", parts{}", n);
  }
  program.source += entry_text("run", threads, parameters,
                               fmt::format("  {}<Problem>({}{{{}}});\n", function, structure, fields), 1);
  program.launches.push_back(std::move(launch));
}

void add_combine(GeneratedProgram& program, const Node& node, const std::vector<Combination>& all,
                 int64_t chunks) {
  // As combine_chunks and combine_chunks_of_many want the threads and the results of a block.
  constexpr int kThreads = 256;
  constexpr int64_t kResultsOfABlock = 8;
  constexpr int64_t kMany = int64_t{1} << 15;
  PointerList pointers(node);
  for (const Combination& own : all) pointers.output(own.output);
  Launch launch{.entry = "combine", .threads = kThreads, .arguments = pointers.arguments()};
  std::string parameters = pointers.parameters(), text;
  for (size_t n = 0; n < all.size(); ++n) {
    launch.arguments.push_back({Argument::Kind::workspace, all[n].offset});
    parameters += fmt::format(", const float* parts{}", n);
    const bool many = all[n].results >= kMany;
    const int64_t blocks = quotient_rounded_up(all[n].results, many ? kThreads : kResultsOfABlock);
    text += fmt::format(
        "  if (block >= 0 && block < {}) combine_chunks{}<Sum>(block, parts{}, {}, {}, 1.0, y{});\n"
        "  block -= {};\n",
        blocks, many ? "_of_many" : "", n, all[n].results, chunks, all[n].output, blocks);
    launch.blocks += blocks;
  }
  program.source +=
      entry_text("combine", kThreads, parameters, "  int block = static_cast<int>(blockIdx.x);\n" + text);
  program.launches.push_back(std::move(launch));
}

}  // namespace tessera::cuda
