#include "device/cuda/few_channels.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/node_body.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/generated_kernel.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int kThreads = 256;
constexpr int64_t kBlocks = 2;       // of a multiprocessor
constexpr int64_t kReserved = 1024;  // bytes of shared memory, by the driver for each block
constexpr int64_t kUnit = 8;         // elements

// The problem P of kernels/few_channels.cuh.
struct FewChannelProblem {
  DataType type = DataType::fp16;
  Shape x, weight, y;
  int64_t stride = 1;
  int64_t padding_top = 0;
  int64_t padding_left = 0;
  int64_t item_rows = 8;

  int64_t channels() const { return x[3]; }
  int64_t outputs() const { return y[3]; }
  int64_t items() const { return y[0] * quotient_rounded_up(y[1], item_rows); }

  // As FewChannels and FewChannelConvolution count them.
  int64_t run_units() const {
    const int64_t lead = padding_left * channels() % 2;
    return quotient_rounded_up(weight[2] * channels() + lead, kUnit);
  }
  int64_t shared_bytes() const {
    const int64_t lead = padding_left * channels() % 2;
    const int64_t start = round_up(padding_left * channels() + lead, kUnit);
    const int64_t first = start - padding_left * channels() - lead;
    const int64_t read = first + (y[2] - 1) * stride * channels() + run_units() * kUnit;
    const int64_t pitch = round_up(std::max(start + x[2] * channels(), read), kUnit);
    const int64_t rows = (item_rows - 1) * stride + weight[1];
    const int64_t steps = quotient_rounded_up(weight[1] * run_units(), 2);
    constexpr int64_t kStepBytes = 32;  // of the weights of one output
    constexpr int64_t kSumsBytes = 2 * kThreads * int64_t{sizeof(float)};
    return steps * outputs() * kStepBytes +
           std::max(2 * rows * pitch * static_cast<int64_t>(size_of(type)), kSumsBytes);
  }

  std::string print(bool statistics) const {
    return fmt::format(
        "#include \"few_channels.cuh\"\nusing namespace tessera;\nstruct Problem {{\n  using Element = {};\n"
        "  static constexpr int images = {}, height = {}, width = {}, channels = {};\n"
        "  static constexpr int out_height = {}, out_width = {}, outputs = {};\n"
        "  static constexpr int window_rows = {}, window_columns = {}, stride = {};\n"
        "  static constexpr int padding_top = {}, padding_left = {}, item_rows = {};\n"
        "  static constexpr bool statistics = {};\n}};\n",
        device_type(type), x[0], x[1], x[2], x[3], y[1], y[2], y[3], weight[1], weight[2], stride,
        padding_top, padding_left, item_rows, statistics);
  }
};

FewChannelProblem read_problem(const Node& main, const GpuTraits& gpu) {
  const auto shape = [](const Value* value) { return value->type().static_shape(); };
  const Attributes& attributes = main.attributes();
  FewChannelProblem problem{.type = main.output()->data_type(),
                            .x = shape(main.input(0)),
                            .weight = shape(main.input(1)),
                            .y = shape(main.output())};
  refuse_unless(problem.type == DataType::fp16 || problem.type == DataType::bf16, "not for {}",
                to_string(problem.type));
  refuse_unless(main.inputs().size() == 2, "a bias");
  refuse_unless(problem.x.size() == 4, "{} spatial axes", problem.x.size() - 2);
  refuse_unless(attributes.integer("groups") == 1, "{} groups", attributes.integer("groups"));
  const auto equals_one = [](int64_t value) { return value == 1; };
  const std::vector<int64_t> dilations = attributes.integers("dilations");
  refuse_unless(std::all_of(dilations.begin(), dilations.end(), equals_one), "dilation");
  const std::vector<int64_t> strides = attributes.integers("strides");
  const std::vector<int64_t> padding = attributes.integers("padding_low");
  refuse_unless(strides[0] == strides[1], "unequal strides");
  refuse_unless(padding[0] >= 0 && padding[1] >= 0, "negative padding");
  problem.stride = strides[0];
  problem.padding_top = padding[0];
  problem.padding_left = padding[1];
  constexpr int64_t kMostChannels = 4;
  const int64_t channels = problem.channels();
  refuse_unless(channels <= kMostChannels, "{} channels are not few", channels);
  refuse_unless(problem.stride * channels % 2 == 0, "windows begin {} elements apart, an odd number",
                problem.stride * channels);
  refuse_unless(problem.x[2] * channels % kUnit == 0, "rows of {} elements are no whole accesses",
                problem.x[2] * channels);
  const int64_t outputs = problem.outputs();
  refuse_unless(outputs == 32 || outputs == 64 || outputs == 128, "{} output channels", outputs);
  refuse_unless(element_count(problem.x) > 0 && element_count(problem.y) > 0, "a tensor without elements");
  problem.item_rows = std::min<int64_t>(problem.item_rows, problem.y[1]);
  const int64_t room = gpu.shared_bytes / kBlocks - kReserved;
  while (problem.item_rows > 1 && problem.shared_bytes() > room) problem.item_rows /= 2;
  refuse_unless(problem.shared_bytes() <= room, "a row needs {} bytes of shared memory",
                problem.shared_bytes());
  return problem;
}

GeneratedProgram print_program(const Node& node, const GpuTraits& gpu) {
  const Node& main = backend::main_node(node, "convolution");
  const FewChannelProblem problem = read_problem(main, gpu);
  const bool statistics = node.body() != nullptr;
  refuse_unless(!statistics || node.outputs().size() == 3,
                "the body makes {} values, not a result and two sums", node.outputs().size());
  const std::string type = device_type(problem.type);
  Launch run{.entry = "run",
             .blocks = std::min(problem.items(), gpu.multiprocessors * kBlocks),
             .threads = kThreads,
             .arguments = {}};
  run.shared_bytes = problem.shared_bytes();
  for (const Value* input : {main.input(0), main.input(1)})
    run.arguments.push_back({Argument::Kind::input, static_cast<int64_t>(backend::input_index(node, input))});
  run.arguments.push_back({Argument::Kind::output, 0});
  run.arguments.push_back({Argument::Kind::workspace, 0});
  GeneratedProgram program;
  program.source =
      problem.print(statistics) +
      fmt::format(
          "extern \"C\" __global__ void __launch_bounds__({0}, {1}) run(const {2}* x, const {2}* "
          "weight, {2}* y, float* parts) {{\n"
          "  few_channel_convolution<Problem>(x, weight, y, parts);\n}}\n",
          kThreads, kBlocks, type);
  if (statistics) {
    const int64_t outputs = problem.outputs();
    program.workspace_bytes = 2 * run.blocks * outputs * static_cast<int64_t>(sizeof(float));
    Launch combine{
        .entry = "combine",
        .blocks = quotient_rounded_up(outputs, int64_t{8}),  // as combine_chunks wants them
        .chunks = 2,
        .threads = kThreads,
        .arguments = {
            {Argument::Kind::workspace, 0}, {Argument::Kind::output, 1}, {Argument::Kind::output, 2}}};
    program.source += fmt::format(
        "extern \"C\" __global__ void __launch_bounds__({}) combine(const float* parts, float* sums, float* "
        "squares) {{\n"
        "  combine_chunks<Sum>(parts + blockIdx.y * {}, {}, {}, 1.0, blockIdx.y == 0 ? sums : "
        "squares);\n}}\n",
        kThreads, run.blocks * outputs, outputs, run.blocks);
    program.launches = {run, combine};
  } else {
    program.launches = {run};
  }
  return program;
}

}  // namespace

KernelCandidate few_channel_candidate(Context& context) {
  const auto program = [&context](const KernelRequest& request) {
    return print_program(request.node, context.traits());
  };
  return backend::checked_candidate("generated.few_channels", program,
                                    [&context, program](const KernelRequest& request) {
                                      return make_generated_kernel(context, program(request));
                                    });
}

}  // namespace tessera::cuda
