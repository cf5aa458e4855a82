#include "device/cpu/convolution/depthwise_convolution.h"

#include <algorithm>
#include <vector>

#include "tessera/device/common/workspace_layout.h"

#include "device/cpu/convolution/convolution_problem.h"
#include "device/cpu/convolution/depthwise_line.h"
#include "device/cpu/kernel_registry.h"
#include "device/cpu/loops/strided_copy.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/post_operations.h"
#include "device/cpu/panels/blocks.h"
#include "device/cpu/panels/panel_product.h"
#include "device/cpu/runtime/caches.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

constexpr int64_t kBlockElements = int64_t{1} << 16;  // of the result, that a thread takes at a time

struct Request {
  ConvolutionProblem problem;
  EpilogueRequest epilogue;
  size_t data = 0;  // places among the node's inputs
  size_t weight = 1;
  bool frozen = false;
};

Request read_request(const KernelRequest& kernel) {
  const Node& node = kernel.node;
  const FusedChain chain = read_chain(node);
  const Node& main = *chain.main;
  Request request;
  request.problem = problem_of(main);
  refuse_unless(request.problem.is_depthwise(), "channels are not each by itself");
  request.epilogue = read_loop_epilogue(node, chain);
  request.data = input_index(node, main.input(0));
  request.weight = input_index(node, main.input(1));
  request.frozen = is_frozen_input(kernel, request.weight);
  return request;
}

class DepthwiseConvolution : public Kernel {
 public:
  explicit DepthwiseConvolution(const Request& request)
      : request_(request),
        lines_(request.problem),
        taps_(lines_.in_window() * lines_.axis().window),
        line_elements_(lines_.axis().destination * lines_.channels()),
        blocks_(cut_evenly(lines_.in_results(), largest_block(), 1)),
        stream_(lines_.in_results() * line_elements_ * int64_t{sizeof(float)} >= kStreamBytes &&
                lines_.channels() % vector_width() == 0 &&
                request.epilogue.limits.activation == LoopActivation::none),
        // [channels, taps] to [taps, channels]
        turn_weight_({taps_, lines_.channels()}, {0, {1, taps_}}, {0, {lines_.channels(), 1}},
                     int64_t{sizeof(float)}) {
    blocks_.parts = std::min(blocks_.parts, part_count(lines_.in_results() * line_elements_ * taps_));
    if (!request.frozen) transposed_ = workspace_.book<float>(weight_elements());
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  std::vector<Packing> packings() const override {
    if (!request_.frozen) return {};
    return {{.input = request_.weight,
             .layout = fmt::format("depthwise {}x{}", taps_, lines_.channels()),
             .bytes = weight_elements() * static_cast<int64_t>(sizeof(float))}};
  }

  void pack(size_t, const void* memory, void* packed) const override { turn_weight_.run(memory, packed); }

  void run(const KernelArguments& arguments) override {
    const auto* weight = request_.frozen ? static_cast<const float*>(arguments.packed[0])
                                         : transposed(arguments.inputs[request_.weight], arguments.workspace);
    const DepthwiseLine common{.lines = {},
                               .axis = lines_.axis(),
                               .channels = lines_.channels(),
                               .x_pixel = lines_.channels(),
                               .weight = weight,
                               .weight_element = lines_.channels(),
                               .epilogue = request_.epilogue.of(arguments),
                               .stream = stream_,
                               .y = static_cast<float*>(arguments.outputs[0]),
                               .y_pixel = lines_.channels()};
    const auto* x = static_cast<const float*>(arguments.inputs[request_.data]);
    for_each_block(blocks_.parts, blocks_.count(), Order::forwards, [&](int64_t, int64_t block) {
      std::vector<WindowLine> found(static_cast<size_t>(lines_.in_window()));
      const Range results = blocks_.block(block);
      for (int64_t result = results.begin; result < results.end; ++result) {
        DepthwiseLine line = common;
        line.lines = {found.data(), static_cast<size_t>(lines_.find(x, result, found.data()))};
        line.y += result * line_elements_;
        line.epilogue = common.epilogue.from(result * line_elements_, /*channel=*/0);
        depthwise_line(line);
      }
    });
  }

 private:
  int64_t weight_elements() const { return taps_ * lines_.channels(); }

  // In lines. Neighbors read the same lines of the image.
  int64_t largest_block() const {
    const int64_t even = quotient_rounded_up(lines_.in_results(), int64_t{omp_get_max_threads()});
    return std::clamp<int64_t>(kBlockElements / line_elements_, 1, even);
  }

  const float* transposed(const void* weight, void* workspace) const {
    float* result = transposed_.in(workspace);
    turn_weight_.run(weight, result);
    return result;
  }

  Request request_;
  WindowLines lines_;
  int64_t taps_;
  int64_t line_elements_;  // of the result
  Blocks blocks_;          // of the result's lines
  bool stream_;
  StridedCopy turn_weight_;
  backend::WorkspaceLayout workspace_;
  backend::WorkspaceArray<float> transposed_;
};

}  // namespace

KernelCandidate depthwise_convolution_candidate() {
  return backend::candidate_of<DepthwiseConvolution>("loops.depthwise", read_request);
}

}  // namespace tessera::cpu
