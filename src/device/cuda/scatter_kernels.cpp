// Rows that are added to those of a table: an order of the updates first, then the sums
// (kernels/scatter.cuh).
#include <algorithm>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

struct ScatterSizes {
  int64_t rows, extent, inner;  // updates, rows of the table, columns
  int64_t ranges;               // of kScatterThreads rows of the table each
  int64_t chunk, chunks;        // updates that a block counts, and how many blocks look at all
  int64_t windows;              // of kScatterPiece updates each
  int64_t slabs;                // of kScatterThreads columns each
};

ScatterSizes sizes_of(const Node& node, const GpuTraits& gpu) {
  const int64_t results = node.output()->type().element_count();
  ScatterSizes sizes{};
  sizes.rows = node.input(0)->type().element_count();
  sizes.extent = node.output()->type().static_shape()[0];
  sizes.inner = sizes.extent == 0 ? 0 : results / sizes.extent;
  // Places are ints, and twice as many are numbers of pieces.
  constexpr int64_t kMost = int64_t{1} << 30;
  backend::refuse_unless(sizes.rows < kMost && sizes.extent < kMost, "{} updates of {} rows", sizes.rows,
                         sizes.extent);
  sizes.ranges = quotient_rounded_up(sizes.extent, int64_t{kScatterThreads});
  // Each block reads what all chunks counted in its range, and few ranges leave multiprocessors idle.
  constexpr int64_t kMostChunks = 64;
  const int64_t wanted = 16 * gpu.multiprocessors / std::max<int64_t>(sizes.ranges, 1);
  const int64_t tiles = std::max<int64_t>(quotient_rounded_up(sizes.rows, int64_t{kScatterTile}), 1);
  const int64_t most = std::clamp<int64_t>(wanted, 1, std::min(tiles, kMostChunks));
  const int64_t tiles_of_chunk = quotient_rounded_up(tiles, most);
  sizes.chunk = tiles_of_chunk * kScatterTile;
  sizes.chunks = quotient_rounded_up(tiles, tiles_of_chunk);
  sizes.windows = quotient_rounded_up(sizes.rows, int64_t{kScatterPiece});
  sizes.slabs = quotient_rounded_up(sizes.inner, int64_t{kScatterThreads});
  return sizes;
}

GeneratedProgram scatter_add(const Node& node, const GpuTraits& gpu) {
  const ScatterSizes sizes = sizes_of(node, gpu);
  const DataType type = node.output()->data_type();
  GeneratedProgram program;
  program.source = fmt::format(
      "#include \"scatter.cuh\"\nusing namespace tessera;\nstruct Problem {{\n  using Element = {};\n"
      "  using Index = {};\n  static constexpr int64 rows = {}, extent = {}, inner = {}, chunk = {}, "
      "chunks = {};\n}};\n",
      device_type(type), device_type(node.input(0)->data_type()), sizes.rows, sizes.extent, sizes.inner,
      sizes.chunk, sizes.chunks);
  if (sizes.extent * sizes.inner == 0) return program;

  PointerList pointers(node);
  pointers.input("indices", 0);
  pointers.input("updates", 1);
  pointers.output("y", 0);
  const auto take = [&](std::string_view field, int64_t count, const std::string& numbers, int64_t bytes) {
    constexpr int64_t kAlignment = 16;
    pointers.workspace(field, program.workspace_bytes, numbers);
    program.workspace_bytes += round_up(count * bytes, kAlignment);
  };
  const auto take_ints = [&](std::string_view field, int64_t count) {
    take(field, count, "int", int64_t{sizeof(int32_t)});
  };
  take_ints("counts", sizes.chunks * sizes.extent);
  take_ints("lower", sizes.chunks * sizes.ranges);
  take_ints("begins", sizes.extent + 1);
  take_ints("order", sizes.rows);
  take_ints("targets", sizes.rows);
  take("pieces", 2 * sizes.windows * sizes.inner, fmt::format("Accumulator<{}>", device_type(type)),
       is_floating(type) && type != DataType::fp64 ? int64_t{sizeof(float)} : int64_t{sizeof(double)});

  const auto launch = [&](const std::string& entry, const std::string& function, int64_t blocks) {
    program.source +=
        calling_entry(entry, kScatterThreads, pointers, "ScatterAddPointers<Problem>", function, 0);
    program.launches.push_back(
        {.entry = entry, .blocks = blocks, .threads = kScatterThreads, .arguments = pointers.arguments()});
  };
  launch("count", "count_updates", sizes.ranges * sizes.chunks);
  launch("place", "place_updates", sizes.ranges * sizes.chunks);
  launch("add", "add_updates",
         sizes.windows * sizes.slabs + quotient_rounded_up(sizes.extent, int64_t{kScatterPiece}));
  // No target has more than one piece of so few updates.
  if (sizes.windows > 1) launch("join", "join_pieces", sizes.windows * sizes.slabs);
  return program;
}

const GeneratedRegistration kScatterAdd("scatter_add", scatter_add);

}  // namespace
}  // namespace tessera::cuda
