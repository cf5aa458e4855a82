// The convolution and its data gradient, which is a convolution of the result's gradient with mirrored taps.
#include <hwy/aligned_allocator.h>

#include "device/cpu/kernel_registry.h"
#include "device/cpu/panel_product.h"
#include "device/cpu/parallel.h"
#include "device/cpu/post_operations.h"
#include "device/cpu/strided_copy.h"
#include "device/cpu/winograd.h"
#include "device/cpu/winograd_problem.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kLargestBlock = 48;       // squares
constexpr int64_t kLeastSquares = 32;       // for a filter that is transformed at each run, as in training
constexpr int64_t kLeastSquaresFrozen = 8;  // for one that is only read
constexpr int64_t kNone = -1;

struct Request {
  ConvolutionProblem problem;
  bool mirrored = false;  // the data gradient
  size_t data = 0;        // places among the node's inputs
  size_t weight = 1;
  int64_t bias = kNone;
  int64_t shortcut = kNone;
  bool relu = false;

  const dnnl::memory::dims& from() const { return mirrored ? problem.destination : problem.source; }
  const dnnl::memory::dims& to() const { return mirrored ? problem.source : problem.destination; }
};

Shape shape_of(const Value* value) {
  return value->type().static_shape();
}

Request read_forward(const Node& node) {
  const FusedChain chain = parse_chain(node, "convolution");
  const Node& main = *chain.main;
  Request request;
  request.problem = make_convolution_problem(shape_of(main.input(0)), shape_of(main.input(1)),
                                             shape_of(main.output()), main.attributes());
  refuse_unless_winograd(request.problem, main.input(0)->data_type());
  request.data = input_index(node, main.input(0));
  request.weight = input_index(node, main.input(1));
  if (chain.bias != nullptr) request.bias = static_cast<int64_t>(input_index(node, chain.bias));
  for (const FusedChain::Step& step : chain.steps) {
    const std::string& name = step.node->operator_name();
    refuse_unless(!request.relu, "{} after relu", name);
    if (name == "relu") {
      request.relu = true;
      continue;
    }
    refuse_unless(name == "add" && request.shortcut == kNone && step.other != nullptr &&
                      step.other->shape() == step.node->output()->shape(),
                  "'{}' is neither a shortcut nor relu", step.node->name());
    request.shortcut = static_cast<int64_t>(input_index(node, step.other));
  }
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

class WinogradConvolution : public Kernel {
 public:
  WinogradConvolution(const Request& request, bool frozen) : request_(request), frozen_(frozen) {
    dnnl::memory::dims before = request.problem.padding_low;
    if (request.mirrored) {
      for (int64_t& pixels : before) pixels = 2 - pixels;
    }
    input_ = winograd_images(request.from(), before, request.to());
    output_ = winograd_images(request.to(), {0, 0}, request.to());
    blocks_ = cut_into_blocks(count_squares(request.to()), kLargestBlock);
    panel_ = std::min(panel_width(), round_up(output_.channels, vector_width()));
    panels_ = (output_.channels + panel_ - 1) / panel_;
    filter_matrix_ = input_.channels * panel_;
    const int64_t filter = panels_ * kWinogradPlaces * filter_matrix_;
    if (frozen_) {
      packed_ = hwy::AllocateAligned<float>(static_cast<size_t>(filter));
    } else {
      filter_offset_ = book(filter);
      turned_offset_ = request.mirrored ? 0 : book(weight_elements());
    }
    transformed_matrix_ = matrix_stride(blocks_.size, input_.channels);
    product_matrix_ = matrix_stride(blocks_.size, panel_);
    thread_elements_ = kWinogradPlaces * (transformed_matrix_ + product_matrix_);
    threads_offset_ = book(blocks_.parts * thread_elements_);
  }

  int64_t workspace_bytes() const override { return elements_ * static_cast<int64_t>(sizeof(float)); }

  void prepare(size_t input, const void* memory) override {
    if (!frozen_ || input != request_.weight) return;
    const auto turned = hwy::AllocateAligned<float>(static_cast<size_t>(weight_elements()));
    transform_filter(static_cast<const float*>(memory), turned.get(), packed_.get());
  }

  void run(const KernelArguments& arguments) override {
    auto* workspace = static_cast<float*>(arguments.workspace);
    const float* filter = packed_.get();
    if (!frozen_) {
      transform_filter(static_cast<const float*>(arguments.inputs[request_.weight]),
                       workspace + turned_offset_, workspace + filter_offset_);
      filter = workspace + filter_offset_;
    }
    const auto optional = [&](int64_t input) {
      return input == kNone ? nullptr
                            : static_cast<const float*>(arguments.inputs[static_cast<size_t>(input)]);
    };
    const WinogradEpilogue epilogue{optional(request_.bias), optional(request_.shortcut), request_.relu};
    const auto* x = static_cast<const float*>(arguments.inputs[request_.data]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for_each_part(blocks_.parts, blocks_.count(), [&](int64_t part, int64_t begin, int64_t end) {
      float* memory = workspace + threads_offset_ + part * thread_elements_;
      for (int64_t block = begin; block < end; ++block)
        run_block(blocks_.block(block), x, filter, epilogue, memory, y);
    });
  }

 private:
  void run_block(Range squares, const float* x, const float* filter, const WinogradEpilogue& epilogue,
                 float* memory, float* y) const {
    const WinogradMatrices<float> transformed{memory, transformed_matrix_, input_.channels};
    float* products = memory + kWinogradPlaces * transformed_matrix_;
    winograd_input(input_, x, squares, transformed);
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const Range channels{panel * panel_, std::min((panel + 1) * panel_, output_.channels)};
      for (int64_t place = 0; place < kWinogradPlaces; ++place) {
        multiply_panel({.a = transformed.data + place * transformed_matrix_,
                        .a_row = input_.channels,
                        .a_depth = 1,
                        .b = filter + (panel * kWinogradPlaces + place) * filter_matrix_,
                        .b_row = panel_,
                        .c = products + place * product_matrix_,
                        .c_row = panel_,
                        .rows = squares.size(),
                        .depth = input_.channels,
                        .width = round_up(channels.size(), vector_width())});
      }
      winograd_output(output_, {products, product_matrix_, panel_}, squares, channels, epilogue, y);
    }
  }

  // weight: [K, 3, 3, C]
  void transform_filter(const float* weight, float* turned, float* out) const {
    const int64_t inputs = request_.problem.input_channels();
    const int64_t outputs = request_.problem.output_channels();
    WinogradFilter filter;
    filter.columns = output_.channels;
    if (request_.mirrored) {
      filter.data = weight + 8 * inputs;
      filter.tap_strides[0] = -3 * inputs;
      filter.tap_strides[1] = -inputs;
      filter.depth_stride = 9 * inputs;
    } else {
      const int64_t row = 9 * inputs;
      StridedCopy({row, outputs}, {0, {1, row}}, {0, {outputs, 1}}, sizeof(float)).run(weight, turned);
      filter.data = turned;
      filter.tap_strides[0] = 3 * inputs * outputs;
      filter.tap_strides[1] = inputs * outputs;
      filter.depth_stride = outputs;
    }
    const int64_t depth = input_.channels;
    for_each_part(part_count(depth * output_.channels * kWinogradPlaces), depth,
                  [&](int64_t, int64_t begin, int64_t end) {
                    winograd_filter(filter, {begin, end}, depth, panel_, out);
                  });
  }

  int64_t weight_elements() const { return 9 * input_.channels * output_.channels; }

  int64_t book(int64_t elements) {
    constexpr int64_t kCacheLine = 16;
    const int64_t offset = elements_;
    elements_ += round_up(elements, kCacheLine);
    return offset;
  }

  Request request_;
  bool frozen_;
  WinogradImages input_;
  WinogradImages output_;
  WinogradBlocks blocks_;
  int64_t panel_ = 0;
  int64_t panels_ = 0;
  int64_t filter_matrix_ = 0;
  int64_t transformed_matrix_ = 0;
  int64_t product_matrix_ = 0;
  int64_t thread_elements_ = 0;
  int64_t elements_ = 0;  // of the workspace; offsets in it follow
  int64_t filter_offset_ = 0;
  int64_t turned_offset_ = 0;
  int64_t threads_offset_ = 0;
  hwy::AlignedFreeUniquePtr<float[]> packed_;  // the transformed frozen filter
};

KernelCandidate candidate(Request (*read)(const Node& node)) {
  return checked_candidate(
      "loops.winograd",
      [read](const KernelRequest& kernel) {
        const Request request = read(kernel.node);
        refuse_few_squares(request.to(),
                           is_frozen_input(kernel, request.weight) ? kLeastSquaresFrozen : kLeastSquares);
      },
      [read](const KernelRequest& kernel) {
        const Request request = read(kernel.node);
        return std::make_unique<WinogradConvolution>(request, is_frozen_input(kernel, request.weight));
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
