// Each thread takes a tile at a time: of some lines of the result those of one group of channels. It makes
// what the depthwise window reads under them, in a buffer that its second-level cache holds, and then the
// lines. Channels of a depthwise convolution are apart, so groups of them repeat nothing; lines of
// neighboring tiles share what the window reaches over.
#include "device/cpu/convolution/expanded_depthwise.h"

#include <algorithm>
#include <vector>

#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/roles.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/settled_values.h"

#include "device/cpu/convolution/depthwise_line.h"
#include "device/cpu/convolution/window_lines.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/loops/strided_copy.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/panels/blocks.h"
#include "device/cpu/panels/panel_packing.h"
#include "device/cpu/panels/panel_product.h"
#include "device/cpu/runtime/parallel.h"
#include "device/cpu/runtime/thread_workspace.h"

namespace tessera::cpu {
namespace {

constexpr const char* kExpand = "expand_";

ConvolutionProblem problem_of(const Node& convolution) {
  const auto shape = [](const Value* value) { return value->type().static_shape(); };
  return make_convolution_problem(shape(convolution.input(0)), shape(convolution.input(1)),
                                  shape(convolution.output()), convolution.attributes());
}

void refuse_unless_taken(const ConvolutionProblem& expand, const ConvolutionProblem& depthwise) {
  refuse_unless(expand.is_pointwise(), "the first window is not one element");
  refuse_unless(depthwise.is_depthwise(), "channels of the second are not each by itself");
  refuse_unless(depthwise.source.size() == 4, "{} spatial axes", depthwise.source.size() - 2);
  refuse_unless(expand.output_channels() % vector_width() == 0, "{} channels are no whole vectors of {}",
                expand.output_channels(), vector_width());
}

// With what follows it, or alone.
FusionMatch chain_of(Node& convolution) {
  static const FusionPattern kChain =
      backend::contraction_pattern("convolution", {.takes_activation = loops_end_with, .ordered = true});
  if (std::optional<FusionMatch> chain = kChain.match(convolution)) return *std::move(chain);
  FusionMatch alone{.members = {&convolution}, .outputs = {convolution.output()}};
  alone.add_roles_of(convolution);
  return alone;
}

// Whether a whole tensor is added, and not only a bias.
bool adds_residual(const FusionMatch& chain) {
  return std::ranges::any_of(chain.members, [&](const Node* member) {
    return member->operator_name() == "add" && member->output() != chain.value("biased");
  });
}

bool is_taken(const Node& expand, const Node& depthwise) {
  const auto problems = backend::unless_refused([&] {
    refuse_unless_taken(problem_of(expand), problem_of(depthwise));
    return true;
  });
  return problems.has_value() && is_settled(*expand.input(1)) && is_settled(*depthwise.input(1));
}

std::optional<FusionMatch> match(Node& anchor) {
  if (anchor.output()->data_type() != DataType::fp32 || !anchor.output()->type().is_static())
    return std::nullopt;
  const FusionMatch expand = chain_of(anchor);
  const Value* expanded = expand.outputs.front();
  Node* depthwise = sole_reader(expanded, "convolution");
  if (depthwise == nullptr || depthwise->input(0) != expanded || adds_residual(expand) ||
      !is_taken(anchor, *depthwise))
    return std::nullopt;
  FusionMatch result = chain_of(*depthwise);
  result.members.insert(result.members.begin(), expand.members.begin(), expand.members.end());
  for (const FusionRole& role : expand.roles) result.add_role(kExpand + role.name, role.value);
  return result;
}

struct Stage {
  ConvolutionProblem problem;
  EpilogueRequest epilogue;
  size_t weight = 0;  // place among the node's inputs
};

struct Request {
  size_t data = 0;
  Stage expand;
  Stage depthwise;
};

Stage read_stage(const KernelRequest& request, const std::string& prefix) {
  const Node& node = request.node;
  const FusedChain chain = read_chain(node, prefix);
  const Stage stage{.problem = problem_of(*chain.main),
                    .epilogue = read_loop_epilogue(node, chain),
                    .weight = input_index(node, chain.main->input(1))};
  refuse_unless(is_frozen_input(request, stage.weight), "a weight is not frozen");
  return stage;
}

Request read_request(const KernelRequest& kernel) {
  const Request request{.data = backend::input_in_role(kernel.node, std::string(kExpand) + "x"),
                        .expand = read_stage(kernel, kExpand),
                        .depthwise = read_stage(kernel, "")};
  refuse_unless_taken(request.expand.problem, request.depthwise.problem);
  refuse_unless(!request.expand.epilogue.residual.has_value(), "a residual between the two");
  return request;
}

constexpr int64_t kBufferElements = int64_t{48} << 10;  // leave room in the cache for what else is read
constexpr int64_t kLeastPanels = 2;    // of a group: lines of the result are written in pieces of them
constexpr int64_t kTilesOfThread = 3;  // or more, so that nobody waits long for the last
constexpr int64_t kBlockRows = 8 * kPanelRows;  // that stay in the first-level cache

// How a result is cut into tiles.
struct Tiling {
  Blocks lines;            // of an image of the result
  Blocks panels;           // of channels, in groups
  int64_t lines_read = 0;  // by the largest tile
};

int64_t lines_under(const WindowAxis& axis, int64_t lines) {
  return std::min(axis.source, (lines - 1) * axis.stride + (axis.window - 1) * axis.dilation + 1);
}

Tiling cut_into_tiles(const WindowAxis& rows, const WindowAxis& line, int64_t images, int64_t panels,
                      int64_t panel) {
  const int64_t of_panel = line.source * panel;  // elements of one line
  const int64_t whole = lines_under(rows, rows.destination) * of_panel;
  int64_t group = std::clamp<int64_t>(kBufferElements / whole, std::min(kLeastPanels, panels), panels);
  const int64_t threads = omp_get_max_threads();
  while (group > 1 && images * quotient_rounded_up(panels, group) < kTilesOfThread * threads) --group;
  int64_t lines = rows.destination;
  while (lines > 1 && lines_under(rows, lines) * of_panel * group > kBufferElements) --lines;
  return {.lines = cut_evenly(rows.destination, lines, 1),
          .panels = cut_evenly(panels, group, 1),
          .lines_read = lines_under(rows, cut_evenly(rows.destination, lines, 1).size)};
}

class ExpandedDepthwiseKernel : public Kernel {
 public:
  explicit ExpandedDepthwiseKernel(const Request& request)
      : request_(request),
        axes_(window_axes(request_.depthwise.problem)),
        images_(request_.depthwise.problem.source[0]),
        depth_(request_.expand.problem.input_channels()),
        channels_(request_.expand.problem.output_channels()),
        packing_(depth_, channels_, /*transposed=*/true),
        panels_(packing_.panels()),
        taps_(axes_[1].window * axes_[2].window),
        tiling_(cut_into_tiles(axes_[1], axes_[2], images_, panels_.count(), panels_.size)),
        tiles_(images_ * tiling_.lines.count() * tiling_.panels.count()),
        threads_(std::min<int64_t>(omp_get_max_threads(), tiles_)),
        turn_weight_({taps_, channels_}, {0, {1, taps_}}, {0, {channels_, 1}}, int64_t{sizeof(float)}) {
    found_ = workspace_.own.book<WindowLine>(axes_[1].window);
    buffer_ =
        workspace_.own.book<float>(tiling_.lines_read * axes_[2].source * tiling_.panels.size * panels_.size);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(threads_); }

  std::vector<Packing> packings() const override {
    return {packing_.of_input(request_.expand.weight),
            {.input = request_.depthwise.weight,
             .layout = fmt::format("depthwise {}x{}", taps_, channels_),
             .bytes = taps_ * channels_ * static_cast<int64_t>(sizeof(float))}};
  }

  void pack(size_t index, const void* memory, void* packed) const override {
    index == 0 ? packing_.pack(memory, packed) : turn_weight_.run(memory, packed);
  }

  void run(const KernelArguments& arguments) override {
    const Run run{.x = static_cast<const float*>(arguments.inputs[request_.data]),
                  .expand = static_cast<const float*>(arguments.packed[0]),
                  .depthwise = static_cast<const float*>(arguments.packed[1]),
                  .y = static_cast<float*>(arguments.outputs[0]),
                  .of_expand = request_.expand.epilogue.of(arguments),
                  .of_depthwise = request_.depthwise.epilogue.of(arguments)};
    for_each_block(threads_, tiles_, Order::forwards, [&](int64_t thread, int64_t tile) {
      void* own = workspace_.own_of(arguments.workspace, thread);
      compute(run, tile, buffer_.in(own), found_.in(own));
    });
  }

 private:
  struct Run {
    const float* x = nullptr;
    const float* expand = nullptr;
    const float* depthwise = nullptr;
    float* y = nullptr;
    LoopEpilogue of_expand;
    LoopEpilogue of_depthwise;
  };

  // Tiles of an image that read the same lines follow each other.
  void compute(const Run& run, int64_t tile, float* buffer, WindowLine* found) const {
    const Range panels = tiling_.panels.block(tile % tiling_.panels.count());
    const int64_t strip = tile / tiling_.panels.count();
    const Range lines = tiling_.lines.block(strip % tiling_.lines.count());
    const int64_t image = strip / tiling_.lines.count();
    const auto& [outer, rows, line] = axes_;
    const Range read{std::clamp<int64_t>(rows.position(lines.begin, 0), 0, rows.source),
                     std::clamp<int64_t>(rows.position(lines.end - 1, rows.window - 1) + 1, 0, rows.source)};
    const Range channels{panels.begin * panels_.size, std::min(panels.end * panels_.size, channels_)};
    expand(run, image, read, panels, channels, buffer);
    for (int64_t y = lines.begin; y < lines.end; ++y) {
      size_t count = 0;
      for (int64_t element = 0; element < rows.window; ++element) {
        const int64_t position = rows.position(y, element);
        if (!rows.holds(position)) continue;
        found[count++] = {buffer + (position - read.begin) * line.source * channels.size(), element};
      }
      const int64_t pixel = (image * rows.destination + y) * line.destination;
      const int64_t place = pixel * channels_ + channels.begin;
      depthwise_line({.lines = {found, count},
                      .axis = line,
                      .channels = channels.size(),
                      .x_pixel = channels.size(),
                      .weight = run.depthwise + channels.begin,
                      .weight_element = channels_,
                      .epilogue = run.of_depthwise.from(place, channels.begin),
                      .y = run.y + place,
                      .y_pixel = channels_});
    }
  }

  // To [lines, pixels, channels] of the buffer.
  void expand(const Run& run, int64_t image, Range lines, Range panels, Range channels, float* buffer) const {
    const auto& [outer, rows, line] = axes_;
    const float* x = run.x + (image * rows.source + lines.begin) * line.source * depth_;
    const int64_t pixels = lines.size() * line.source;
    for (int64_t pixel = 0; pixel < pixels; pixel += kBlockRows) {
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const Range columns = panels_.block(panel);
        const LoopEpilogue epilogue = run.of_expand.from(/*element=*/0, columns.begin);
        multiply_panel({.a = x + pixel * depth_,
                        .a_row = depth_,
                        .a_depth = 1,
                        .b = run.expand + panel * packing_.panel_elements(),
                        .b_row = panels_.size,
                        .c = buffer + pixel * channels.size() + columns.begin - channels.begin,
                        .c_row = channels.size(),
                        .rows = std::min(kBlockRows, pixels - pixel),
                        .depth = depth_,
                        .width = columns.size(),
                        .epilogue = &epilogue});
      }
    }
  }

  Request request_;
  WindowAxes axes_;
  int64_t images_;
  int64_t depth_;     // channels of x
  int64_t channels_;  // of the result
  PanelPacking packing_;
  Blocks panels_;
  int64_t taps_;
  Tiling tiling_;
  int64_t tiles_;
  int64_t threads_;
  StridedCopy turn_weight_;  // [channels, taps] to [taps, channels]
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<WindowLine> found_;  // of the window
  backend::WorkspaceArray<float> buffer_;      // [lines, pixels, channels] of a tile
};

const CpuKernelRegistration kExpandedDepthwise({"fused:expanded_depthwise", [](const Node&) {
                                                  return std::vector<KernelCandidate>{
                                                      backend::candidate_of<ExpandedDepthwiseKernel>(
                                                          "loops.expanded_depthwise", read_request)};
                                                }});

}  // namespace

FusionPattern expanded_depthwise_pattern() {
  FusionPattern pattern{.kind = "expanded_depthwise", .anchor = "convolution", .match = match};
  for (const std::string prefix : {kExpand, ""}) {
    for (const char* role : {"x", "weight", "y", "bias", "biased", "step"})
      pattern.roles.push_back(prefix + role);
  }
  return pattern;
}

}  // namespace tessera::cpu
