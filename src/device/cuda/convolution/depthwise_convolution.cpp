#include "device/cuda/convolution/depthwise_convolution.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/convolution/epilogue_activation.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int64_t kThreads = 256;            // of a block, at most
constexpr int kBlocks = 2;                   // of a multiprocessor, at least
constexpr int64_t kMostSlice = 256;          // channels
constexpr int64_t kSharedBytes = 48 * 1024;  // that a block has without asking

// The problem P of kernels/depthwise.cuh.
struct DepthwiseProblem {
  const Node& main;
  DataType type;
  Shape x, weight, y;
  int64_t vector = 1;
  int64_t slice = 0;
  int64_t rows = 1;  // of the result, that a thread makes
  int64_t columns = 1;

  explicit DepthwiseProblem(const Node& convolution)
      : main(convolution),
        type(convolution.output()->data_type()),
        x(convolution.input(0)->type().static_shape()),
        weight(convolution.input(1)->type().static_shape()),
        y(convolution.output()->type().static_shape()) {
    refuse_unless(is_half(type) || type == DataType::fp32, "{}", to_string(type));
    refuse_unless(x.size() == 4, "{} spatial axes", x.size() - 2);
    refuse_unless(element_count(x) > 0 && element_count(y) > 0, "a tensor without elements");
    refuse_unless(weight[3] == 1 && channels() == x[3] && channels() == weight[0] && channels() > 1,
                  "channels are not each by itself");
    const std::vector<int64_t>& dilations = attribute("dilations");
    refuse_unless(std::ranges::all_of(dilations, [](int64_t value) { return value == 1; }), "dilation");
    const std::vector<int64_t>& padding = attribute("padding_low");
    refuse_unless(padding[0] >= 0 && padding[1] >= 0, "negative padding");
    constexpr int64_t kMostTaps = 49;  // whose loops are unrolled
    refuse_unless(taps() <= kMostTaps, "a window of {} x {}", weight[1], weight[2]);
    constexpr int64_t kMostElements = int64_t{1} << 31;  // an int holds the items, and a line's elements
    refuse_unless(element_count(x) < kMostElements && element_count(y) < kMostElements, "large tensors");
  }

  const std::vector<int64_t>& attribute(const char* name) const { return main.attributes().integers(name); }
  int64_t channels() const { return y[3]; }
  int64_t taps() const { return weight[1] * weight[2]; }
  int64_t vectors() const { return slice / vector; }
  int64_t slices() const { return quotient_rounded_up(channels(), slice); }
  int64_t items_at_once() const { return std::max<int64_t>(kThreads / vectors(), 1); }
  int64_t threads() const { return items_at_once() * vectors(); }
  int64_t items() const {
    return y[0] * quotient_rounded_up(y[1], rows) * quotient_rounded_up(y[2], columns);
  }

  void set_slice() {
    const auto bytes = static_cast<int64_t>(size_of(type));
    vector = 16 / bytes;
    while (channels() % vector != 0) vector /= 2;
    const int64_t most = std::min(kMostSlice, kSharedBytes / (taps() * bytes));
    slice = round_up(quotient_rounded_up(channels(), quotient_rounded_up(channels(), most / vector * vector)),
                     vector);
  }

  // What neighbors share is read once; but registers hold what two blocks of a multiprocessor have of the
  // window and of its lines, and as many threads as the GPU holds come first.
  void set_item(const GpuTraits& gpu) {
    constexpr int64_t kThreadsOfMultiprocessor = 1024;
    constexpr int64_t kMostReads = 36;  // of a thread's items, at once
    for (const auto& [wanted_rows, wanted_columns] : {std::pair<int64_t, int64_t>{2, 2}, {1, 2}}) {
      rows = std::min(wanted_rows, y[1]);
      columns = std::min(wanted_columns, y[2]);
      const int64_t reads = ((rows - 1) * attribute("strides")[0] + weight[1]) *
                            ((columns - 1) * attribute("strides")[1] + weight[2]);
      if (reads <= kMostReads &&
          items() * quotient_rounded_up(channels(), vector) >= gpu.multiprocessors * kThreadsOfMultiprocessor)
        return;
    }
    rows = columns = 1;
  }

  std::string print(const backend::Epilogue& epilogue) const {
    return fmt::format(
        "#include \"depthwise.cuh\"\nusing namespace tessera;\nstruct Problem {{\n  using Element = {};\n"
        "  static constexpr int images = {}, height = {}, width = {}, channels = {};\n"
        "  static constexpr int out_height = {}, out_width = {};\n"
        "  static constexpr int window_rows = {}, window_columns = {}, stride_y = {}, stride_x = {};\n"
        "  static constexpr int padding_top = {}, padding_left = {};\n"
        "  static constexpr int vector = {}, rows = {}, columns = {}, slice = {}, items_at_once = {};\n"
        "  static constexpr bool bias = {}, residual = {};\n{}}};\n",
        device_type(type), x[0], x[1], x[2], x[3], y[1], y[2], weight[1], weight[2], attribute("strides")[0],
        attribute("strides")[1], attribute("padding_low")[0], attribute("padding_low")[1], vector, rows,
        columns, slice, items_at_once(), epilogue.bias.has_value(), epilogue.residual.has_value(),
        ending_text(epilogue.activation));
  }
};

GeneratedProgram print_program(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const backend::FusedChain chain = backend::read_chain(node);
  const backend::Epilogue epilogue = backend::read_epilogue(node, chain, kConvolutionActivations);
  DepthwiseProblem problem(*chain.main);
  problem.set_slice();
  problem.set_item(gpu);
  PointerList pointers(node);
  pointers.input("x", backend::input_index(node, chain.main->input(0)));
  pointers.input("weight", backend::input_index(node, chain.main->input(1)));
  pointers.input("bias", epilogue.bias);
  pointers.input("residual", epilogue.residual);
  pointers.output("result", 0);
  const int64_t all = quotient_rounded_up(problem.items(), problem.items_at_once());
  // Blocks that go on spare reading the weights anew.
  constexpr int64_t kBlocksOfMultiprocessor = 8;
  const int64_t most = quotient_rounded_up(gpu.multiprocessors * kBlocksOfMultiprocessor, problem.slices());
  const auto threads = static_cast<int>(problem.threads());
  GeneratedProgram program;
  program.source =
      problem.print(epilogue) +
      calling_entry("run", threads, pointers, "DepthwisePointers<Problem>", "depthwise_convolution", kBlocks);
  program.launches = {{.entry = "run",
                       .blocks = std::min(all, most),
                       .chunks = problem.slices(),
                       .threads = threads,
                       .arguments = pointers.arguments()}};
  return program;
}

}  // namespace

KernelCandidate depthwise_convolution_candidate(Context& context) {
  return generated_candidate("depthwise", context, print_program);
}

}  // namespace tessera::cuda
