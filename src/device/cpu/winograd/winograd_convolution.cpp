// The convolution and its data gradient, which is a convolution of the result's gradient with mirrored taps.
#include <algorithm>
#include <optional>

#include <hwy/aligned_allocator.h>
#include <omp.h>

#include "device/cpu/loops/strided_copy.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/panels/blocks.h"
#include "device/cpu/panels/panel_product.h"
#include "device/cpu/runtime/parallel.h"
#include "device/cpu/runtime/thread_workspace.h"
#include "device/cpu/winograd/winograd.h"
#include "device/cpu/winograd/winograd_problem.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kLargestBlock = 48;       // squares
constexpr int64_t kLeastSquares = 32;       // for a filter that is transformed at each run, as in training
constexpr int64_t kLeastSquaresFrozen = 8;  // for one that is only read

struct Request {
  ConvolutionProblem problem;
  bool mirrored = false;  // the data gradient
  size_t data = 0;        // places among the node's inputs
  size_t weight = 1;
  EpilogueRequest epilogue;

  const dnnl::memory::dims& from() const { return mirrored ? problem.destination : problem.source; }
  const dnnl::memory::dims& to() const { return mirrored ? problem.source : problem.destination; }
};

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

Request read_forward(const Node& node) {
  const FusedChain chain = read_chain(node);
  const Node& main = *chain.main;
  Request request;
  request.problem = problem_of(main);
  refuse_unless_winograd(request.problem, main.input(0)->data_type());
  request.data = input_index(node, main.input(0));
  request.weight = input_index(node, main.input(1));
  request.epilogue = read_loop_epilogue(node, chain);
  refuse_unless(request.epilogue.limits.activation == LoopActivation::none, "an activation that is no limit");
  return request;
}

Request read_data_gradient(const Node& node) {
  Request request;
  request.problem = make_convolution_problem(shape_of(node.output()), shape_of(node.input(1)),
                                             shape_of(node.input(0)), node.attributes());
  refuse_unless_winograd(request.problem, node.input(0)->data_type());
  request.mirrored = true;
  return request;
}

// Two ways to share the work. By squares: each thread transforms and multiplies blocks of squares with the
// whole filter. By panels, where the filter is the larger: all squares are transformed first, and each thread
// transforms and multiplies panels of the filter, which then stay in its cache and need no memory for all of
// them.
class WinogradConvolution : public Kernel {
 public:
  WinogradConvolution(const Request& request, bool frozen) : request_(request), frozen_(frozen) {
    dnnl::memory::dims before = request.problem.padding_low;
    if (request.mirrored) {
      for (int64_t& pixels : before) pixels = 2 - pixels;
    }
    input_ = winograd_images(request.from(), before, request.to());
    output_ = winograd_images(request.to(), {0, 0}, request.to());
    squares_ = cut_into_blocks(count_squares(request.to()), kLargestBlock);
    panel_ = std::min(panel_width(), round_up(output_.channels, vector_width()));
    panels_ = cut_into_panels(output_.channels, panel_);
    by_panels_ = output_.channels > squares_.total && panels_.count() >= omp_get_max_threads();
    // Each block reads a panel of the filter once more: then as few as possible.
    if (by_panels_) squares_ = cut_evenly(squares_.total, kLargestBlock, kPanelRows);
    filter_panel_ = kWinogradPlaces * input_.channels * panel_;
    transformed_matrix_ = matrix_stride(by_panels_ ? squares_.total : squares_.size, input_.channels);
    product_matrix_ = matrix_stride(squares_.size, panel_);
    if (!request_.mirrored) plan_turning();
    book_workspace();
  }

  int64_t workspace_bytes() const override {
    return workspace_.bytes(by_panels_ ? panels_.parts : std::max(squares_.parts, panels_.parts));
  }

  std::vector<Packing> packings() const override {
    if (!frozen_) return {};
    return {{.input = request_.weight,
             .layout =
                 fmt::format("winograd {}x3x3x{}{}, {} channels a panel", request_.problem.output_channels(),
                             request_.problem.input_channels(), request_.mirrored ? " mirrored" : "", panel_),
             .bytes = panels_.count() * filter_panel_ * static_cast<int64_t>(sizeof(float))}};
  }

  void pack(size_t, const void* memory, void* packed) const override {
    const auto transposed =
        hwy::AllocateAligned<float>(static_cast<size_t>(std::max<int64_t>(transposed_elements(), 1)));
    for (int64_t panel = 0; panel < panels_.count(); ++panel) {
      transform_filter(static_cast<const float*>(memory), panel, transposed.get(),
                       static_cast<float*>(packed) + panel * filter_panel_);
    }
  }

  void run(const KernelArguments& arguments) override {
    const Run run{.x = static_cast<const float*>(arguments.inputs[request_.data]),
                  .weight = static_cast<const float*>(arguments.inputs[request_.weight]),
                  .packed = frozen_ ? static_cast<const float*>(arguments.packed[0]) : nullptr,
                  .epilogue = request_.epilogue.of(arguments),
                  .y = static_cast<float*>(arguments.outputs[0]),
                  .workspace = arguments.workspace};
    by_panels_ ? run_by_panels(run) : run_by_squares(run);
  }

 private:
  struct Run {
    const float* x;
    const float* weight;
    const float* packed;  // null unless frozen
    LoopEpilogue epilogue;
    float* y;
    void* workspace;
  };

  void book_workspace() {
    backend::WorkspaceLayout& shared = workspace_.shared;
    backend::WorkspaceLayout& own = workspace_.own;
    transformed_ = (by_panels_ ? shared : own).book<float>(kWinogradPlaces * transformed_matrix_);
    products_ = own.book<float>(kWinogradPlaces * product_matrix_);
    if (frozen_) return;
    transposed_ = own.book<float>(transposed_elements());
    filter_ =
        by_panels_ ? own.book<float>(filter_panel_) : shared.book<float>(panels_.count() * filter_panel_);
  }

  // Copies that turn the filter's rows of a panel into columns.
  void plan_turning() {
    const int64_t row = 9 * input_.channels;
    const auto turning = [&](int64_t columns) {
      return StridedCopy({row, columns}, {0, {1, row}}, {0, {columns, 1}}, sizeof(float));
    };
    turn_panel_ = turning(panel_);
    turn_last_panel_ = turning(panels_.block(panels_.count() - 1).size());
  }

  void run_by_squares(const Run& run) const {
    const float* filter = run.packed;
    if (!frozen_) {
      float* made = filter_.in(run.workspace);
      for_each_block(panels_.parts, panels_.count(), Order::forwards, [&](int64_t thread, int64_t panel) {
        float* transposed = transposed_.in(workspace_.own_of(run.workspace, thread));
        transform_filter(run.weight, panel, transposed, made + panel * filter_panel_);
      });
      filter = made;
    }
    for_each_block(squares_.parts, squares_.count(), Order::forwards, [&](int64_t thread, int64_t block) {
      void* memory = workspace_.own_of(run.workspace, thread);
      float* transformed = transformed_.in(memory);
      const Range squares = squares_.block(block);
      winograd_input(input_, run.x, squares, {0, input_.channels},
                     {transformed, transformed_matrix_, input_.channels});
      for (int64_t panel = 0; panel < panels_.count(); ++panel) {
        multiply(run, squares, panel, transformed, filter + panel * filter_panel_, products_.in(memory));
      }
    });
  }

  void run_by_panels(const Run& run) const {
    float* transformed = transformed_.in(run.workspace);
    for_each_part(panels_.parts, squares_.total, [&](int64_t, int64_t begin, int64_t end) {
      winograd_input(input_, run.x, {begin, end}, {0, input_.channels},
                     {transformed + begin * input_.channels, transformed_matrix_, input_.channels});
    });
    for_each_block(panels_.parts, panels_.count(), Order::forwards, [&](int64_t thread, int64_t panel) {
      void* memory = workspace_.own_of(run.workspace, thread);
      const float* filter = run.packed;
      if (frozen_) {
        filter += panel * filter_panel_;
      } else {
        transform_filter(run.weight, panel, transposed_.in(memory), filter_.in(memory));
        filter = filter_.in(memory);
      }
      for (int64_t block = 0; block < squares_.count(); ++block) {
        const Range squares = squares_.block(block);
        multiply(run, squares, panel, transformed + squares.begin * input_.channels, filter,
                 products_.in(memory));
      }
    });
  }

  void multiply(const Run& run, Range squares, int64_t panel, const float* transformed, const float* filter,
                float* products) const {
    const Range channels = panels_.block(panel);
    for (int64_t place = 0; place < kWinogradPlaces; ++place) {
      multiply_panel({.a = transformed + place * transformed_matrix_,
                      .a_row = input_.channels,
                      .a_depth = 1,
                      .b = filter + place * input_.channels * panel_,
                      .b_row = panel_,
                      .c = products + place * product_matrix_,
                      .c_row = panel_,
                      .rows = squares.size(),
                      .depth = input_.channels,
                      .width = round_up(channels.size(), vector_width())});
    }
    winograd_output(output_, {products, product_matrix_, panel_}, squares, channels, run.epilogue, run.y);
  }

  // weight: [K, 3, 3, C]; the panel's columns are output channels going forward, input channels going back.
  void transform_filter(const float* weight, int64_t panel, float* transposed, float* out) const {
    const Range columns = panels_.block(panel);
    const int64_t depth = input_.channels;
    WinogradFilter filter;
    filter.columns = columns.size();
    if (request_.mirrored) {
      const int64_t tap = output_.channels;
      filter.data = weight + 8 * tap + columns.begin;
      filter.tap_strides[0] = -3 * tap;
      filter.tap_strides[1] = -tap;
      filter.depth_stride = 9 * tap;
    } else {
      const StridedCopy& turn = panel + 1 < panels_.count() ? *turn_panel_ : *turn_last_panel_;
      turn.run(weight + columns.begin * 9 * depth, transposed);
      filter.data = transposed;
      filter.tap_strides[0] = 3 * depth * columns.size();
      filter.tap_strides[1] = depth * columns.size();
      filter.depth_stride = columns.size();
    }
    winograd_filter(filter, depth, panel_, out);
  }

  int64_t transposed_elements() const { return request_.mirrored ? 0 : 9 * input_.channels * panel_; }

  Request request_;
  bool frozen_;
  bool by_panels_ = false;
  WinogradImages input_;
  WinogradImages output_;
  Blocks squares_;
  Blocks panels_;      // of output channels
  int64_t panel_ = 0;  // channels
  int64_t filter_panel_ = 0;
  int64_t transformed_matrix_ = 0;
  int64_t product_matrix_ = 0;
  std::optional<StridedCopy> turn_panel_;  // none where the filter is mirrored
  std::optional<StridedCopy> turn_last_panel_;
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<float> transformed_;
  backend::WorkspaceArray<float> products_;
  backend::WorkspaceArray<float> transposed_;
  backend::WorkspaceArray<float> filter_;
};

KernelCandidate candidate(Request (*read)(const Node& node)) {
  return winograd_candidate([read](const KernelRequest& kernel) -> KernelMaker {
    const Request request = read(kernel.node);
    const bool frozen = is_frozen_input(kernel, request.weight);
    refuse_few_squares(request.to(), frozen ? kLeastSquaresFrozen : kLeastSquares);
    return [request, frozen] { return std::make_unique<WinogradConvolution>(request, frozen); };
  });
}

}  // namespace

KernelCandidate winograd_convolution_candidate() {
  return candidate(read_forward);
}

KernelCandidate winograd_data_gradient_candidate() {
  return candidate(read_data_gradient);
}

}  // namespace tessera::cpu
