// y[pixels, columns] = x[pixels, depth] weight[depth, columns]; a row of x is a pixel's channels, or all that
// its window reads.
//
// Only the weight is packed, once where it is frozen; pixels of windows of one element are read as they lie,
// the next ones fetched to the second-level cache while these are multiplied, and large results go past the
// caches, which spares reading what is overwritten.
#include "device/cpu/convolution/panel_convolution.h"

#include <algorithm>
#include <optional>

#include "device/cpu/convolution/blocks.h"
#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/convolution/panel_product.h"
#include "device/cpu/convolution/window_patches.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/loops/strided_copy.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/runtime/caches.h"
#include "device/cpu/runtime/parallel.h"
#include "device/cpu/runtime/thread_workspace.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kLargestBlock = 48;                  // pixels
constexpr int64_t kLargestPatches = int64_t{1} << 15;  // floats that are gathered at a time
constexpr int64_t kLeastPixels = 512;                  // fewer are not worth packing the weight

struct Product {
  int64_t pixels = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  bool transposed = false;  // the weight is stored [columns, depth]
  bool frozen = false;      // and packed once
  size_t data = 0;          // places among the node's inputs
  size_t weight = 1;
  EpilogueRequest epilogue = {};
  std::optional<WindowPatches> patches = {};  // none: rows of x are pixels
};

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

void refuse_bad_sizes(const Product& product) {
  refuse_unless(product.columns % vector_width() == 0, "{} channels are no whole vectors of {}",
                product.columns, vector_width());
  refuse_unless(product.frozen || product.pixels >= kLeastPixels, "{} pixels", product.pixels);
}

void refuse_unless_pointwise(const ConvolutionProblem& problem) {
  refuse_unless(problem.is_pointwise(),
                "the window is not one element, or there are strides, padding or groups");
}

// With the problem that it is of.
std::pair<Product, ConvolutionProblem> read_convolution(const KernelRequest& request) {
  const Node& node = request.node;
  const FusedChain chain = read_chain(node);
  const Node& main = *chain.main;
  Product product{.transposed = true, .epilogue = read_loop_epilogue(node, chain)};
  const ConvolutionProblem problem = make_convolution_problem(
      shape_of(main.input(0)), shape_of(main.input(1)), shape_of(main.output()), main.attributes());
  product.pixels = problem.pixels();
  product.columns = problem.output_channels();
  product.data = input_index(node, main.input(0));
  product.weight = input_index(node, main.input(1));
  product.frozen = is_frozen_input(request, product.weight);
  // Where oneDNN takes it, it is as fast with a weight of its own layout, and with an epilogue.
  refuse_unless(needs_loops(chain) || (!product.frozen && product.epilogue.is_empty()),
                "the weight is frozen, or there is an epilogue that oneDNN takes");
  return {product, problem};
}

Product read_pointwise(const KernelRequest& request) {
  auto [product, problem] = read_convolution(request);
  refuse_unless_pointwise(problem);
  product.depth = problem.input_channels();
  refuse_bad_sizes(product);
  return product;
}

Product read_windows(const KernelRequest& request) {
  auto [product, problem] = read_convolution(request);
  refuse_unless(problem.groups == 1, "{} groups", problem.groups);
  refuse_unless(!problem.is_pointwise(), "pixels need not be gathered");
  refuse_unless(!product.epilogue.is_empty(), "nothing is fused to it");
  product.patches.emplace(problem);
  product.depth = product.patches->depth();
  refuse_bad_sizes(product);
  return product;
}

Product read_data_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  const Value& dy = *node.input(0);
  refuse_unless(dy.data_type() == DataType::fp32, "only fp32, not {}", to_string(dy.data_type()));
  const ConvolutionProblem problem = make_convolution_problem(
      shape_of(node.output()), shape_of(node.input(1)), shape_of(node.input(0)), node.attributes());
  refuse_unless_pointwise(problem);
  refuse_unless(!is_frozen_input(request, 1), "the weight is frozen");
  const Product product{
      .pixels = problem.pixels(), .depth = shape_of(&dy).back(), .columns = problem.input_channels()};
  refuse_bad_sizes(product);
  return product;
}

class PanelConvolution : public Kernel {
 public:
  explicit PanelConvolution(const Product& product)
      : product_(product),
        pixels_(cut_into_blocks(product.pixels, largest_block(product))),
        panels_(cut_into_panels(product.columns, panel_width())),
        stream_(product.pixels * product.columns * int64_t{sizeof(float)} >= kStreamBytes),
        pack_panel_(packing(product, panels_.size, panels_.size)),
        pack_last_panel_(packing(product, panels_.block(panels_.count() - 1).size(), panels_.size)) {
    // Where the weight is the larger, threads share it out, and each reads all pixels.
    if (!product.patches.has_value() && product.columns > product.pixels) {
      pixels_ = cut_evenly(product.pixels, kLargestBlock, kPanelRows);
      shares_ = panels_.parts;
    }
    if (!product.frozen) packed_ = workspace_.shared.book<float>(packed_elements());
    if (product.patches.has_value()) patches_ = workspace_.own.book<float>(pixels_.size * product.depth);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(pixels_.parts); }

  std::vector<Packing> packings() const override {
    if (!product_.frozen) return {};
    return {{.input = product_.weight,
             .layout = fmt::format("panels of {}, {}x{}", panels_.size, product_.depth, product_.columns),
             .bytes = packed_elements() * static_cast<int64_t>(sizeof(float))}};
  }

  void pack(size_t, const void* memory, void* packed) const override {
    for (int64_t panel = 0; panel < panels_.count(); ++panel)
      pack_panel(static_cast<const float*>(memory), static_cast<float*>(packed), panel);
  }

  void run(const KernelArguments& arguments) override {
    const LoopEpilogue epilogue = product_.epilogue.of(arguments);
    Run run{.x = static_cast<const float*>(arguments.inputs[product_.data]),
            .y = static_cast<float*>(arguments.outputs[0]),
            .epilogue = product_.epilogue.is_empty() ? nullptr : &epilogue};
    if (product_.frozen) {
      run.packed = static_cast<const float*>(arguments.packed[0]);
    } else {
      const auto* weight = static_cast<const float*>(arguments.inputs[product_.weight]);
      float* packed = packed_.in(arguments.workspace);
      for_each_block(panels_.parts, panels_.count(), Order::forwards,
                     [&](int64_t, int64_t panel) { pack_panel(weight, packed, panel); });
      run.packed = packed;
    }
    const int64_t blocks = pixels_.count();
    for_each_block(
        std::max(pixels_.parts, shares_), blocks * shares_, Order::forwards,
        [&](int64_t thread, int64_t task) {
          const int64_t share = task / blocks;
          const Range panels{panels_.count() * share / shares_, panels_.count() * (share + 1) / shares_};
          multiply(run, task % blocks, panels, patches_.in(workspace_.own_of(arguments.workspace, thread)));
        });
  }

 private:
  struct Run {
    const float* x = nullptr;
    const float* packed = nullptr;
    float* y = nullptr;
    const LoopEpilogue* epilogue = nullptr;
  };

  static int64_t largest_block(const Product& product) {
    if (!product.patches.has_value()) return kLargestBlock;
    return std::clamp(kLargestPatches / product.depth / kPanelRows * kPanelRows, kPanelRows, kLargestBlock);
  }

  // Of some columns of the weight to [depth, panel].
  static StridedCopy packing(const Product& product, int64_t columns, int64_t panel) {
    const backend::StridedView from{
        0, {product.transposed ? 1 : product.columns, product.transposed ? product.depth : 1}};
    return {{product.depth, columns}, from, {0, {panel, 1}}, int64_t{sizeof(float)}};
  }

  void pack_panel(const float* weight, float* packed, int64_t panel) const {
    const StridedCopy& pack = panel + 1 < panels_.count() ? pack_panel_ : pack_last_panel_;
    const int64_t column = panels_.block(panel).begin;
    pack.run(weight + column * (product_.transposed ? product_.depth : 1), packed + panel * packed_panel());
  }

  int64_t packed_panel() const { return product_.depth * panels_.size; }
  int64_t packed_elements() const { return panels_.count() * packed_panel(); }

  void multiply(const Run& run, int64_t block, Range panels, float* patches) const {
    const Range pixels = pixels_.block(block);
    const float* rows = run.x + pixels.begin * product_.depth;
    const bool gathers = product_.patches.has_value();
    if (gathers) {
      product_.patches->gather(run.x, pixels, patches);
      rows = patches;
    }
    const bool fetches = !gathers && shares_ == 1 && block + 1 < pixels_.count();
    const Range next = fetches ? pixels_.block(block + 1) : Range{};
    const int64_t steps = panels.size() * quotient_rounded_up(pixels.size(), kPanelRows);
    int64_t step = 0;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const Range columns = panels_.block(panel);
      for (int64_t row = 0; row < pixels.size(); row += kPanelRows, ++step) {
        const int64_t begin = next.size() * product_.depth * step / steps;
        fetch(run.x + next.begin * product_.depth + begin,
              next.size() * product_.depth * (step + 1) / steps - begin);
        const int64_t place = (pixels.begin + row) * product_.columns + columns.begin;
        const LoopEpilogue epilogue =
            run.epilogue == nullptr ? LoopEpilogue{} : run.epilogue->from(place, columns.begin);
        multiply_panel({.a = rows + row * product_.depth,
                        .a_row = product_.depth,
                        .a_depth = 1,
                        .b = run.packed + panel * packed_panel(),
                        .b_row = panels_.size,
                        .c = run.y + place,
                        .c_row = product_.columns,
                        .rows = std::min(kPanelRows, pixels.size() - row),
                        .depth = product_.depth,
                        .width = columns.size(),
                        .stream = stream_,
                        .epilogue = run.epilogue == nullptr ? nullptr : &epilogue});
      }
    }
  }

  Product product_;
  Blocks pixels_;
  Blocks panels_;       // of columns
  int64_t shares_ = 1;  // of the panels
  bool stream_;
  StridedCopy pack_panel_;
  StridedCopy pack_last_panel_;
  ThreadWorkspace workspace_;
  backend::WorkspaceArray<float> packed_;   // [panels, depth, panel]
  backend::WorkspaceArray<float> patches_;  // [pixels, depth]
};

KernelCandidate candidate(const std::string& name, Product (*read)(const KernelRequest& request)) {
  return backend::candidate_of<PanelConvolution>(name, read);
}

}  // namespace

KernelCandidate pointwise_convolution_candidate() {
  return candidate("loops.pointwise", read_pointwise);
}

KernelCandidate pointwise_data_gradient_candidate() {
  return candidate("loops.pointwise", read_data_gradient);
}

KernelCandidate window_convolution_candidate() {
  return candidate("loops.windows", read_windows);
}

}  // namespace tessera::cpu
