#include "device/cpu/convolution/depthwise_block.h"

#include <algorithm>

#include "tessera/device/common/roles.h"

#include "device/cpu/convolution/depthwise_block_pattern.h"
#include "device/cpu/convolution/depthwise_line.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/panels/panel_product.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

// Of one buffer and of two: they leave room in the cache for what else is read.
constexpr int64_t kBufferElements = int64_t{48} << 10;
constexpr int64_t kBuffersElements = int64_t{64} << 10;
constexpr int64_t kLeastPanels = 2;     // of a group: lines of the result are written in pieces of them
constexpr int64_t kLargestDepth = 384;  // of a product after it: such a panel stays in the first-level cache
constexpr int64_t kTilesOfThread = 3;   // or more, so that nobody waits long for the last
constexpr int64_t kBlockRows = 8 * kPanelRows;  // that stay in the first-level cache

BlockStage read_stage(const KernelRequest& request, const std::string& prefix) {
  const Node& node = request.node;
  const FusedChain chain = read_chain(node, prefix);
  const BlockStage stage{.problem = problem_of(*chain.main),
                         .epilogue = read_loop_epilogue(node, chain),
                         .weight = input_index(node, chain.main->input(1))};
  refuse_unless(is_frozen_input(request, stage.weight), "a weight is not frozen");
  return stage;
}

std::optional<BlockStage> read_pointwise(const KernelRequest& request, const std::string& prefix) {
  if (!backend::has_role(request.node, prefix + "y")) return std::nullopt;
  BlockStage stage = read_stage(request, prefix);
  refuse_unless_pointwise(stage.problem);
  return stage;
}

DepthwiseBlockRequest read_request(const KernelRequest& kernel) {
  DepthwiseBlockRequest request{.expand = read_pointwise(kernel, kExpand),
                                .depthwise = read_stage(kernel, kDepthwise),
                                .project = read_pointwise(kernel, kProject)};
  const std::string first = request.expand.has_value() ? kExpand : kDepthwise;
  request.data = backend::input_in_role(kernel.node, first + "x");
  refuse_unless_depthwise(request.depthwise.problem);
  const auto adds = [](const BlockStage& stage) { return stage.epilogue.residual.has_value(); };
  refuse_unless(!request.expand.has_value() || !adds(*request.expand), "a residual before the window");
  refuse_unless(!request.project.has_value() || !adds(request.depthwise), "a residual before the product");
  return request;
}

std::optional<PanelPacking> packing_of(const std::optional<BlockStage>& stage) {
  if (!stage.has_value()) return std::nullopt;
  return PanelPacking(stage->problem.input_channels(), stage->problem.output_channels(), /*transposed=*/true);
}

int64_t lines_under(const WindowAxis& axis, int64_t lines) {
  return std::min(axis.source, (lines - 1) * axis.stride + (axis.window - 1) * axis.dilation + 1);
}

// Of both buffers, for lines of the result and so many channels.
int64_t buffer_elements(const WindowAxes& axes, int64_t lines, int64_t channels, bool expands,
                        bool projects) {
  int64_t pixels = 0;
  if (expands) pixels += lines_under(axes[1], lines) * axes[2].source;
  if (projects) pixels += lines * axes[2].destination;
  return pixels * channels;
}

// Rows that are multiplied by a panel before the next one is: of about kBlockRows, none of them few.
Blocks rows_of(int64_t pixels) {
  const int64_t blocks = std::max<int64_t>((pixels + kBlockRows / 2) / kBlockRows, 1);
  const int64_t even = quotient_rounded_up(pixels, blocks);
  return cut_into_panels(pixels, blocks == 1 ? even : round_up(even, kPanelRows));
}

// All rows by some panels of a packed weight: `whole` has the weight, and c begins with the first panel's
// columns.
void multiply(const PanelProduct& whole, const PanelPacking& packing, Range panels) {
  const Blocks rows = rows_of(whole.rows);
  for (int64_t block = 0; block < rows.count(); ++block) {
    const Range own = rows.block(block);
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const Range columns = packing.panels().block(panel);
      const int64_t place = own.begin * whole.c_row + (panel - panels.begin) * packing.panels().size;
      PanelProduct part = whole;
      part.a += own.begin * whole.a_row;
      part.b += panel * packing.panel_elements();
      part.b_row = packing.panels().size;
      part.c += place;
      part.rows = own.size();
      part.width = columns.size();
      LoopEpilogue epilogue;
      if (whole.epilogue != nullptr) {
        epilogue = whole.epilogue->from(place, columns.begin);
        part.epilogue = &epilogue;
      }
      multiply_panel(part);
    }
  }
}

}  // namespace

DepthwiseTiling depthwise_tiling(const ConvolutionProblem& depthwise, bool expands, bool projects) {
  const WindowAxes axes = window_axes(depthwise);
  const int64_t images = depthwise.source[0];
  const int64_t all_lines = axes[1].destination;
  const int64_t threads = omp_get_max_threads();
  DepthwiseTiling tiling{.panels = cut_into_panels(depthwise.output_channels(), panel_width())};
  const auto elements = [&](int64_t lines, int64_t group) {
    return buffer_elements(axes, lines, group * tiling.panels.size, expands, projects);
  };
  const int64_t room = expands && projects ? kBuffersElements : kBufferElements;
  const int64_t panels = tiling.panels.count();
  const int64_t most = projects ? std::max<int64_t>(kLargestDepth / tiling.panels.size, 1) : panels;
  int64_t group = std::clamp<int64_t>(room / elements(all_lines, 1), std::min(kLeastPanels, panels),
                                      std::min(most, panels));
  const int64_t wanted = kTilesOfThread * threads;
  while (!projects && group > 1 && images * quotient_rounded_up(panels, group) < wanted) --group;
  int64_t lines = all_lines;
  while (lines > 1 && elements(lines, group) > room) --lines;
  int64_t strips = quotient_rounded_up(all_lines, lines);
  tiling.fills_threads = !projects || images * strips >= threads;
  if (projects && images * strips < wanted)
    strips = std::min(quotient_rounded_up(round_up(images * strips, threads), images), all_lines);
  tiling.lines = cut_into_panels(all_lines, quotient_rounded_up(all_lines, strips));
  tiling.groups = cut_evenly(panels, group, 1);
  return tiling;
}

struct DepthwiseBlock::Run {
  const float* x = nullptr;
  const float* expand_weight = nullptr;
  const float* depthwise_weight = nullptr;
  const float* project_weight = nullptr;
  float* y = nullptr;
  LoopEpilogue of_expand;
  LoopEpilogue of_depthwise;
  LoopEpilogue of_project;
  // A thread's own.
  WindowLine* found = nullptr;
  float* expanded = nullptr;
  float* middle = nullptr;
};

struct DepthwiseBlock::Tile {
  int64_t image = 0;
  Range lines;  // of the depthwise result
  Range read;   // lines of its operand
};

struct DepthwiseBlock::Group {
  Range panels;
  Range channels;
};

DepthwiseBlock::DepthwiseBlock(const DepthwiseBlockRequest& request)
    : request_(request),
      axes_(window_axes(request.depthwise.problem)),
      images_(request.depthwise.problem.source[0]),
      channels_(request.depthwise.problem.output_channels()),
      taps_(axes_[1].window * axes_[2].window),
      expand_(packing_of(request.expand)),
      project_(packing_of(request.project)),
      turn_weight_({taps_, channels_}, {0, {1, taps_}}, {0, {channels_, 1}}, int64_t{sizeof(float)}),
      tiling_(depthwise_tiling(request.depthwise.problem, expand_.has_value(), project_.has_value())),
      tasks_(images_ * tiling_.lines.count() * (project_.has_value() ? 1 : tiling_.groups.count())),
      threads_(std::min<int64_t>(omp_get_max_threads(), tasks_)) {
  found_ = workspace_.own.book<WindowLine>(axes_[1].window);
  const int64_t channels = tiling_.groups.size * tiling_.panels.size;
  if (expand_.has_value())
    expanded_ =
        workspace_.own.book<float>(lines_under(axes_[1], tiling_.lines.size) * axes_[2].source * channels);
  if (project_.has_value())
    middle_ = workspace_.own.book<float>(tiling_.lines.size * axes_[2].destination * channels);
}

std::vector<Packing> DepthwiseBlock::packings() const {
  std::vector<Packing> result;
  if (expand_.has_value()) result.push_back(expand_->of_input(request_.expand->weight));
  if (project_.has_value()) result.push_back(project_->of_input(request_.project->weight));
  result.push_back({.input = request_.depthwise.weight,
                    .layout = fmt::format("depthwise {}x{}", taps_, channels_),
                    .bytes = taps_ * channels_ * static_cast<int64_t>(sizeof(float))});
  return result;
}

void DepthwiseBlock::pack(size_t index, const void* memory, void* packed) const {
  if (expand_.has_value() && index == 0) return expand_->pack(memory, packed);
  if (project_.has_value() && index == (expand_.has_value() ? 1 : 0)) return project_->pack(memory, packed);
  turn_weight_.run(memory, packed);
}

void DepthwiseBlock::run(const KernelArguments& arguments) {
  size_t packed = 0;
  const auto next = [&] { return static_cast<const float*>(arguments.packed[packed++]); };
  Run common{.x = static_cast<const float*>(arguments.inputs[request_.data]),
             .y = static_cast<float*>(arguments.outputs[0]),
             .of_depthwise = request_.depthwise.epilogue.of(arguments)};
  if (expand_.has_value()) {
    common.expand_weight = next();
    common.of_expand = request_.expand->epilogue.of(arguments);
  }
  if (project_.has_value()) {
    common.project_weight = next();
    common.of_project = request_.project->epilogue.of(arguments);
  }
  common.depthwise_weight = next();
  const int64_t shares = project_.has_value() ? 1 : tiling_.groups.count();
  const int64_t groups = tiling_.groups.count() / shares;  // of a task
  for_each_block(threads_, tasks_, Order::forwards, [&](int64_t thread, int64_t task) {
    void* own = workspace_.own_of(arguments.workspace, thread);
    Run run = common;
    run.found = found_.in(own);
    run.expanded = expanded_.in(own);
    run.middle = middle_.in(own);
    // Tiles that read the same lines follow each other.
    const Tile tile = tile_at(task / shares);
    for (int64_t i = 0; i < groups; ++i) {
      const Group group = group_at(task % shares * groups + i);
      if (expand_.has_value()) expand(run, tile, group);
      depthwise(run, tile, group);
      if (project_.has_value()) project(run, tile, group);
    }
  });
}

DepthwiseBlock::Tile DepthwiseBlock::tile_at(int64_t index) const {
  const WindowAxis& rows = axes_[1];
  Tile tile{.image = index / tiling_.lines.count(),
            .lines = tiling_.lines.block(index % tiling_.lines.count()),
            .read = {}};
  tile.read = {std::clamp<int64_t>(rows.position(tile.lines.begin, 0), 0, rows.source),
               std::clamp<int64_t>(rows.position(tile.lines.end - 1, rows.window - 1) + 1, 0, rows.source)};
  return tile;
}

DepthwiseBlock::Group DepthwiseBlock::group_at(int64_t index) const {
  const Range panels = tiling_.groups.block(index);
  return {.panels = panels,
          .channels = {panels.begin * tiling_.panels.size,
                       std::min(panels.end * tiling_.panels.size, channels_)}};
}

void DepthwiseBlock::expand(const Run& run, const Tile& tile, const Group& group) const {
  const WindowAxis& line = axes_[2];
  const int64_t depth = request_.expand->problem.input_channels();
  const int64_t first = (tile.image * axes_[1].source + tile.read.begin) * line.source;
  multiply({.a = run.x + first * depth,
            .a_row = depth,
            .a_depth = 1,
            .b = run.expand_weight,
            .c = run.expanded,
            .c_row = group.channels.size(),
            .rows = tile.read.size() * line.source,
            .depth = depth,
            .epilogue = &run.of_expand},
           *expand_, group.panels);
}

void DepthwiseBlock::depthwise(const Run& run, const Tile& tile, const Group& group) const {
  const auto& [outer, rows, line] = axes_;
  const int64_t channels = group.channels.size();
  const int64_t x_pixel = expand_.has_value() ? channels : channels_;
  const float* x = run.expanded;
  if (!expand_.has_value())
    x = run.x + (tile.image * rows.source + tile.read.begin) * line.source * channels_ + group.channels.begin;
  for (int64_t y = tile.lines.begin; y < tile.lines.end; ++y) {
    size_t count = 0;
    for (int64_t element = 0; element < rows.window; ++element) {
      const int64_t position = rows.position(y, element);
      if (!rows.holds(position)) continue;
      run.found[count++] = {x + (position - tile.read.begin) * line.source * x_pixel, element};
    }
    const int64_t place =
        (tile.image * rows.destination + y) * line.destination * channels_ + group.channels.begin;
    const bool last = !project_.has_value();
    depthwise_line(
        {.lines = {run.found, count},
         .axis = line,
         .channels = channels,
         .x_pixel = x_pixel,
         .weight = run.depthwise_weight + group.channels.begin,
         .weight_element = channels_,
         .epilogue = run.of_depthwise.from(place, group.channels.begin),
         .y = last ? run.y + place : run.middle + (y - tile.lines.begin) * line.destination * channels,
         .y_pixel = last ? channels_ : channels});
  }
}

void DepthwiseBlock::project(const Run& run, const Tile& tile, const Group& group) const {
  const auto& [outer, lines, line] = axes_;
  const Blocks& panels = project_->panels();
  const int64_t channels = group.channels.size();
  const int64_t first = (tile.image * lines.destination + tile.lines.begin) * line.destination * panels.total;
  const LoopEpilogue epilogue = run.of_project.from(first, /*channel=*/0);
  multiply({.a = run.middle,
            .a_row = channels,
            .a_depth = 1,
            .b = run.project_weight + group.channels.begin * panels.size,
            .c = run.y + first,
            .c_row = panels.total,
            .rows = tile.lines.size() * line.destination,
            .depth = channels,
            .accumulate = group.panels.begin > 0,
            .epilogue = group.channels.end == channels_ ? &epilogue : nullptr},
           *project_, {0, panels.count()});
}

namespace {

const CpuKernelRegistration kDepthwiseBlock({"fused:depthwise_block", [](const Node&) {
                                               return std::vector<KernelCandidate>{
                                                   backend::candidate_of<DepthwiseBlock>(
                                                       "loops.depthwise_block", read_request)};
                                             }});

}  // namespace

}  // namespace tessera::cpu
