// y[pixels, columns] = x[pixels, depth] weight[depth, columns], of one row of channels for each pixel.
//
// Only the weight is packed; pixels are read as they lie, the next ones fetched to the second-level cache
// while these are multiplied, and large results go past the caches, which spares reading what is overwritten.
#include "device/cpu/convolution/pointwise_convolution.h"

#include <algorithm>

#include "device/cpu/convolution/blocks.h"
#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/convolution/panel_product.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/loops/strided_copy.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/runtime/caches.h"
#include "device/cpu/runtime/parallel.h"
#include "device/cpu/runtime/thread_workspace.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kLargestBlock = 48;  // pixels
constexpr int64_t kLeastPixels = 512;  // fewer are not worth packing the weight

struct Product {
  int64_t pixels = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  bool transposed = false;  // the weight is stored [columns, depth]
};

Product make_product(const KernelRequest& request, const Shape& source, const Shape& destination,
                     bool forward) {
  const Node& node = request.node;
  const Value& x = *node.input(0);
  refuse_unless(x.data_type() == DataType::fp32, "only fp32, not {}", to_string(x.data_type()));
  const ConvolutionProblem problem =
      make_convolution_problem(source, node.input(1)->type().static_shape(), destination, node.attributes());
  refuse_unless(problem.is_pointwise(),
                "the window is not one element, or there are strides, padding or groups");
  refuse_unless(!is_frozen_input(request, 1), "the weight is frozen");
  const Product product{.pixels = problem.pixels(),
                        .depth = x.type().static_shape().back(),
                        .columns = node.output()->type().static_shape().back(),
                        .transposed = forward};
  refuse_unless(product.columns % vector_width() == 0, "{} channels are no whole vectors of {}",
                product.columns, vector_width());
  refuse_unless(product.pixels >= kLeastPixels, "{} pixels", product.pixels);
  return product;
}

Product read_forward(const KernelRequest& request) {
  const Node& node = request.node;
  refuse_unless(node.body() == nullptr, "something is fused to the convolution");
  refuse_unless(node.inputs().size() == 2, "the convolution has a bias of its own");
  return make_product(request, node.input(0)->type().static_shape(), node.output()->type().static_shape(),
                      /*forward=*/true);
}

Product read_data_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  return make_product(request, node.output()->type().static_shape(), node.input(0)->type().static_shape(),
                      /*forward=*/false);
}

class PointwiseConvolution : public Kernel {
 public:
  explicit PointwiseConvolution(const Product& product)
      : product_(product),
        pixels_(cut_into_blocks(product.pixels, kLargestBlock)),
        panels_(cut_into_panels(product.columns, panel_width())),
        stream_(product.pixels * product.columns * int64_t{sizeof(float)} >= kStreamBytes),
        pack_panel_(packing(product, panels_.size, panels_.size)),
        pack_last_panel_(packing(product, panels_.block(panels_.count() - 1).size(), panels_.size)) {
    packed_ = workspace_.book<float>(panels_.count() * packed_panel());
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  void run(const KernelArguments& arguments) override {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    const auto* weight = static_cast<const float*>(arguments.inputs[1]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    float* packed = packed_.in(arguments.workspace);
    for_each_block(panels_.parts, panels_.count(), Order::forwards, [&](int64_t, int64_t panel) {
      const StridedCopy& pack = panel + 1 < panels_.count() ? pack_panel_ : pack_last_panel_;
      const int64_t column = panels_.block(panel).begin;
      pack.run(weight + column * (product_.transposed ? product_.depth : 1), packed + panel * packed_panel());
    });
    for_each_block(pixels_.parts, pixels_.count(), Order::forwards,
                   [&](int64_t, int64_t block) { multiply(x, packed, y, block); });
  }

 private:
  // Of some columns of the weight to [depth, panel].
  static StridedCopy packing(const Product& product, int64_t columns, int64_t panel) {
    const backend::StridedView from{
        0, {product.transposed ? 1 : product.columns, product.transposed ? product.depth : 1}};
    return {{product.depth, columns}, from, {0, {panel, 1}}, int64_t{sizeof(float)}};
  }

  int64_t packed_panel() const { return product_.depth * panels_.size; }

  void multiply(const float* x, const float* packed, float* y, int64_t block) const {
    const Range pixels = pixels_.block(block);
    const Range next = block + 1 < pixels_.count() ? pixels_.block(block + 1) : Range{};
    const int64_t steps = panels_.count() * quotient_rounded_up(pixels.size(), kPanelRows);
    int64_t step = 0;
    for (int64_t panel = 0; panel < panels_.count(); ++panel) {
      const Range columns = panels_.block(panel);
      for (int64_t pixel = pixels.begin; pixel < pixels.end; pixel += kPanelRows, ++step) {
        const int64_t begin = next.size() * product_.depth * step / steps;
        fetch(x + next.begin * product_.depth + begin,
              next.size() * product_.depth * (step + 1) / steps - begin);
        multiply_panel({.a = x + pixel * product_.depth,
                        .a_row = product_.depth,
                        .a_depth = 1,
                        .b = packed + panel * packed_panel(),
                        .b_row = panels_.size,
                        .c = y + pixel * product_.columns + columns.begin,
                        .c_row = product_.columns,
                        .rows = std::min(kPanelRows, pixels.end - pixel),
                        .depth = product_.depth,
                        .width = columns.size(),
                        .stream = stream_});
      }
    }
  }

  Product product_;
  Blocks pixels_;
  Blocks panels_;  // of columns
  bool stream_;
  StridedCopy pack_panel_;
  StridedCopy pack_last_panel_;
  backend::WorkspaceLayout workspace_;
  backend::WorkspaceArray<float> packed_;  // [panels, depth, panel]
};

KernelCandidate candidate(Product (*read)(const KernelRequest& request)) {
  return backend::candidate_of<PointwiseConvolution>("loops.pointwise", read);
}

}  // namespace

KernelCandidate pointwise_convolution_candidate() {
  return candidate(read_forward);
}

KernelCandidate pointwise_data_gradient_candidate() {
  return candidate(read_data_gradient);
}

}  // namespace tessera::cpu
