#include "device/cpu/panels/panel_kernel.h"

#include <algorithm>

#include "tessera/device/common/refusal.h"

#include "device/cpu/panels/panel_product.h"
#include "device/cpu/runtime/caches.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kLargestBlock = 48;                  // rows
constexpr int64_t kLargestDeepBlock = 132;             // rows of which a block is deep
constexpr int64_t kDeep = 256;                         // multiplied at a time: few passes over the weight pay
constexpr int64_t kLargestDepth = 384;                 // a panel so deep stays in the first-level cache
constexpr int64_t kLargestPatches = int64_t{1} << 15;  // floats that are gathered at a time
constexpr int64_t kLeastRows = 512;                    // fewer are not worth packing the weight
constexpr int64_t kRowsBetween = 4 * kPanelRows;       // fetching some of the next ones

int64_t largest_block(const PanelProblem& problem) {
  if (problem.patches.has_value())
    return std::clamp(kLargestPatches / problem.depth / kPanelRows * kPanelRows, kPanelRows, kLargestBlock);
  return problem.depth < kDeep ? kLargestBlock : kLargestDeepBlock;
}

// Large results go past the caches, which spares reading what is overwritten.
bool goes_past_caches(const PanelProblem& problem, const Blocks& depths) {
  return problem.rows * problem.columns * int64_t{sizeof(float)} >= kStreamBytes && depths.count() == 1 &&
         problem.epilogue.limits.activation == LoopActivation::none;
}

}  // namespace

void refuse_bad_sizes(const PanelProblem& problem) {
  backend::refuse_unless(problem.columns % vector_width() == 0, "{} columns are no whole vectors of {}",
                         problem.columns, vector_width());
  backend::refuse_unless(problem.frozen || problem.rows >= kLeastRows, "{} rows", problem.rows);
}

// Of one call.
struct PanelKernel::Run {
  const float* x = nullptr;
  const float* packed = nullptr;
  float* y = nullptr;
  const LoopEpilogue* epilogue = nullptr;
};

// What one block of rows multiplies of the depth: [rows, depth] of the block.
struct PanelKernel::Part {
  const float* x = nullptr;
  Range rows;
  Range depth;
  Range panels;
  Range next;  // rows to fetch meanwhile
};

PanelKernel::PanelKernel(const PanelProblem& problem)
    : problem_(problem),
      rows_(cut_into_blocks(problem.rows, largest_block(problem))),
      depths_(cut_evenly(problem.depth, kLargestDepth, 1)),
      packing_(problem.depth, problem.columns, problem.transposed),
      stream_(goes_past_caches(problem, depths_)) {
  // Where the weight is the larger, threads share it out, and each reads all rows.
  if (!problem.patches.has_value() && problem.columns > problem.rows) {
    rows_ = cut_evenly(problem.rows, largest_block(problem), kPanelRows);
    shares_ = packing_.panels().parts;
  }
  if (!problem.frozen) packed_ = workspace_.shared.book<float>(packing_.elements());
  if (problem.patches.has_value()) patches_ = workspace_.own.book<float>(rows_.size * problem.depth);
}

std::vector<Packing> PanelKernel::packings() const {
  if (!problem_.frozen) return {};
  return {packing_.of_input(problem_.weight)};
}

void PanelKernel::pack(size_t, const void* memory, void* packed) const {
  packing_.pack(memory, packed);
}

const float* PanelKernel::packed_weight(const KernelArguments& arguments) const {
  if (problem_.frozen) return static_cast<const float*>(arguments.packed[0]);
  const auto* weight = static_cast<const float*>(arguments.inputs[problem_.weight]);
  float* packed = packed_.in(arguments.workspace);
  const Blocks& panels = packing_.panels();
  for_each_block(panels.parts, panels.count(), Order::forwards,
                 [&](int64_t, int64_t panel) { packing_.pack_panel(weight, packed, panel); });
  return packed;
}

void PanelKernel::run(const KernelArguments& arguments) {
  const LoopEpilogue epilogue = problem_.epilogue.of(arguments);
  const Run run{.x = static_cast<const float*>(arguments.inputs[problem_.data]),
                .packed = packed_weight(arguments),
                .y = static_cast<float*>(arguments.outputs[0]),
                .epilogue = problem_.epilogue.is_empty() ? nullptr : &epilogue};
  const int64_t blocks = rows_.count();
  for_each_block(
      std::max(rows_.parts, shares_), blocks * shares_, Order::forwards, [&](int64_t thread, int64_t task) {
        const int64_t share = task / blocks;
        const Range panels{packing_.panels().count() * share / shares_,
                           packing_.panels().count() * (share + 1) / shares_};
        multiply(run, task % blocks, panels, patches_.in(workspace_.own_of(arguments.workspace, thread)));
      });
}

void PanelKernel::multiply(const Run& run, int64_t block, Range panels, float* patches) const {
  const Range rows = rows_.block(block);
  Part part{
      .x = run.x + rows.begin * problem_.depth, .rows = rows, .depth = {}, .panels = panels, .next = {}};
  if (problem_.patches.has_value()) {
    problem_.patches->gather(run.x, rows, patches);
    part.x = patches;
  } else if (shares_ == 1 && depths_.count() == 1 && block + 1 < rows_.count()) {
    part.next = rows_.block(block + 1);
  }
  for (int64_t depth = 0; depth < depths_.count(); ++depth) {
    part.depth = depths_.block(depth);
    multiply_part(run, part);
  }
}

// The next rows and the next panel are fetched to the second-level cache while these are multiplied: a weight
// that is larger than the caches comes from memory, and the first rows would wait for it line by line.
void PanelKernel::multiply_part(const Run& run, const Part& part) const {
  const bool last = part.depth.end == problem_.depth;
  const int64_t width = packing_.panels().size;
  const int64_t pieces = quotient_rounded_up(part.rows.size(), kRowsBetween);
  const int64_t steps = part.panels.size() * pieces;
  int64_t step = 0;
  for (int64_t panel = part.panels.begin; panel < part.panels.end; ++panel) {
    const Range columns = packing_.panels().block(panel);
    const float* weight = run.packed + panel * packing_.panel_elements() + part.depth.begin * width;
    const bool follows = panel + 1 < part.panels.end;
    const int64_t following = follows ? part.depth.size() * width : 0;
    for (int64_t row = 0, piece = 0; row < part.rows.size(); row += kRowsBetween, ++piece, ++step) {
      const int64_t begin = part.next.size() * problem_.depth * step / steps;
      fetch(run.x + part.next.begin * problem_.depth + begin,
            part.next.size() * problem_.depth * (step + 1) / steps - begin);
      const int64_t first = following * piece / pieces;
      const int64_t place = (part.rows.begin + row) * problem_.columns + columns.begin;
      const LoopEpilogue epilogue =
          run.epilogue == nullptr ? LoopEpilogue{} : run.epilogue->from(place, columns.begin);
      multiply_panel({.a = part.x + row * problem_.depth + part.depth.begin,
                      .a_row = problem_.depth,
                      .a_depth = 1,
                      .b = weight,
                      .b_row = width,
                      .c = run.y + place,
                      .c_row = problem_.columns,
                      .rows = std::min(kRowsBetween, part.rows.size() - row),
                      .depth = part.depth.size(),
                      .width = columns.size(),
                      .accumulate = part.depth.begin > 0,
                      .stream = stream_,
                      .epilogue = run.epilogue == nullptr || !last ? nullptr : &epilogue,
                      .following = follows ? weight + packing_.panel_elements() + first : nullptr,
                      .following_elements = following * (piece + 1) / pieces - first});
    }
  }
}

}  // namespace tessera::cpu
