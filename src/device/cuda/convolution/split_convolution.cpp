#include "device/cuda/convolution/split_convolution.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/passes/fuse.h"

#include "device/cuda/codegen/partial_sums.h"
#include "device/cuda/convolution/epilogue_activation.h"
#include "kernels/block_sizes.h"
#include "kernels/split_layout.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int kFirstWithClusters = 90;
constexpr int64_t kMostStages = 8;

// The problem P of kernels/split_convolution.cuh.
struct SplitProblem {
  const Node& main;
  DataType type;
  Shape x, weight, y;
  bool ahead = false;  // the weights never change
  int64_t splits = 1;
  int64_t stages = 2;

  SplitProblem(const Node& convolution, bool tf32, bool frozen_weights, const GpuTraits& gpu)
      : main(convolution),
        type(main.output()->data_type()),
        x(main.input(0)->type().static_shape()),
        weight(main.input(1)->type().static_shape()),
        y(main.output()->type().static_shape()),
        ahead(frozen_weights) {
    refuse_unless(gpu.architecture >= kFirstWithClusters, "no clusters before compute capability 9.0");
    refuse_unless_multiplied(type, tf32);
    refuse_unless(x.size() == 4, "{} spatial axes", x.size() - 2);
    refuse_unless(attributes().integer("groups") == 1, "{} groups", attributes().integer("groups"));
    for (const int64_t padding : attributes().integers("padding_low"))
      refuse_unless(padding >= 0, "negative padding");
    refuse_unless(element_count(x) > 0 && element_count(y) > 0, "a tensor without elements");
    refuse_unless(channels() % row_elements() == 0, "{} channels are no whole rows of {}", channels(),
                  row_elements());
    refuse_unless(outputs() % kSplitTileOutputs == 0, "{} output channels", outputs());
    constexpr int64_t kMostElements = int64_t{1} << 30;  // an int holds their places
    refuse_unless(std::max(element_count(x), element_count(weight)) <= kMostElements, "{} and {} elements",
                  element_count(x), element_count(weight));
    const int64_t blocks = gpu.multiprocessors;
    constexpr int64_t kMostSplits = 8;  // of a cluster on any card
    while (splits < kMostSplits && 2 * splits * tiles() <= blocks && 4 * splits <= parts()) splits *= 2;
    // Begun ahead it may be faster without.
    refuse_unless(splits > 1 || (ahead && tiles() <= 2 * blocks), "{} tiles, and sums of {} parts", tiles(),
                  parts());
    stages = std::clamp<int64_t>(quotient_rounded_up(parts(), splits) + 1, 2, kMostStages);
  }

  const Attributes& attributes() const { return main.attributes(); }
  int64_t channels() const { return x.back(); }
  int64_t outputs() const { return y.back(); }
  int64_t pixels() const { return element_count(y) / outputs(); }
  int64_t row_elements() const { return kSplitRowBytes / static_cast<int64_t>(size_of(type)); }
  int64_t parts() const { return weight[1] * weight[2] * channels() / row_elements(); }
  int64_t tiles() const {
    return quotient_rounded_up(pixels(), int64_t{kSplitTilePixels}) * (outputs() / kSplitTileOutputs);
  }

  std::string print(const backend::Epilogue& epilogue) const {
    const auto pair = [&](const char* name) { return attributes().integers(name); };
    const std::vector<int64_t> strides = pair("strides"), dilations = pair("dilations"),
                               padding = pair("padding_low");
    return fmt::format(
        "#include \"split_convolution.cuh\"\nusing namespace tessera;\nstruct Problem {{\n"
        "  using Element = {};\n"
        "  static constexpr int images = {}, height = {}, width = {}, channels = {};\n"
        "  static constexpr int out_height = {}, out_width = {}, outputs = {};\n"
        "  static constexpr int window_rows = {}, window_columns = {};\n"
        "  static constexpr int stride_y = {}, stride_x = {}, dilation_y = {}, dilation_x = {};\n"
        "  static constexpr int padding_top = {}, padding_left = {}, splits = {}, stages = {};\n"
        "  static constexpr bool ahead = {}, bias = {}, residual = {};\n{}}};\n",
        device_type(type), x[0], x[1], x[2], x[3], y[1], y[2], y[3], weight[1], weight[2], strides[0],
        strides[1], dilations[0], dilations[1], padding[0], padding[1], splits, stages, ahead,
        epilogue.bias.has_value(), epilogue.residual.has_value(), ending_text(epilogue.activation));
  }
};

GeneratedProgram print_program(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const backend::FusedChain chain = backend::read_chain(node);
  const backend::Epilogue epilogue = backend::read_epilogue(node, chain, kConvolutionActivations);
  const size_t weight = backend::input_index(node, chain.main->input(1));
  const SplitProblem problem(*chain.main, request.tf32, request.frozen_inputs[weight], gpu);
  PointerList pointers(node);
  pointers.input("x", backend::input_index(node, chain.main->input(0)));
  pointers.input("weight", weight);
  pointers.input("bias", epilogue.bias);
  pointers.input("residual", epilogue.residual);
  pointers.output("result", 0);
  GeneratedProgram program;
  program.source = problem.print(epilogue);
  add_run(program, pointers, "SplitConvolutionPointers<Problem>", "split_convolution",
          problem.tiles() * problem.splits, split_bytes(problem.stages), kSplitThreads,
          problem.ahead ? Beginning::ahead : Beginning::wait);
  program.launches.back().cluster = static_cast<int>(problem.splits);
  return program;
}

}  // namespace

KernelCandidate split_convolution_candidate(Context& context) {
  return generated_candidate("split_convolution", context, print_program);
}

}  // namespace tessera::cuda
