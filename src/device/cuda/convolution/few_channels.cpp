#include "device/cuda/convolution/few_channels.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/convolution_patterns.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/passes/fuse.h"

#include "device/cuda/codegen/partial_sums.h"
#include "device/cuda/convolution/epilogue_activation.h"
#include "kernels/few_channel_layout.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int64_t kAccessBytes = 16;

// The problem P of kernels/few_channels.cuh, without what its users add.
struct FewChannelProblem {
  DataType type = DataType::fp16;
  DataType image_type = DataType::fp16;  // of x, which the kernel rounds
  Shape x, weight, y;
  int64_t stride = 1;
  int64_t padding_top = 0;
  int64_t padding_left = 0;
  int64_t item_rows = 1;
  int64_t threads = 256;  // of a block
  int64_t blocks = 2;     // of a multiprocessor

  int64_t channels() const { return x[3]; }
  int64_t outputs() const { return y[3]; }
  bool in_tf32() const { return type == DataType::fp32; }
  int64_t items() const { return y[0] * quotient_rounded_up(y[1], item_rows); }
  int64_t element_bytes() const { return static_cast<int64_t>(size_of(type)); }

  FewChannelLayout layout() const {
    return {channels(), x[2], outputs(), y[2], weight[1], weight[2], stride, padding_left, item_rows};
  }
  int64_t run_units() const { return layout().run_units(); }
  int64_t units() const { return layout().units(); }

  // Of what the instructions of few_channel_products.cuh take.
  int64_t forward_bytes() const {
    return few_channel_forward_bytes(layout(), element_bytes(), in_tf32() ? 1 : 2, threads);
  }
  int64_t gradient_bytes() const {
    return few_channel_gradient_bytes(layout(), element_bytes(), in_tf32() ? 8 : 16);
  }

  // `constants`: of the structure, beside the problem's.
  std::string print(std::string_view header, const std::string& constants) const {
    return fmt::format(
        "#include \"{}\"\nusing namespace tessera;\nstruct Problem {{\n  using Element = {};\n"
        "  using Image = {};\n"
        "  static constexpr int images = {}, height = {}, width = {}, channels = {};\n"
        "  static constexpr int out_height = {}, out_width = {}, outputs = {};\n"
        "  static constexpr int window_rows = {}, window_columns = {}, stride = {};\n"
        "  static constexpr int padding_top = {}, padding_left = {}, item_rows = {}, threads = {};\n"
        "{}}};\n",
        header, device_type(type), device_type(image_type), x[0], x[1], x[2], x[3], y[1], y[2], y[3],
        weight[1], weight[2], stride, padding_top, padding_left, item_rows, threads, constants);
  }
};

// The input of the node that is the image: the operand of `main`, or what fuse_input_casts has its body round
// to that.
const Value* image_of(const Node& node, const Node& main) {
  return backend::has_role(node, "wide_image") ? &backend::in_role(node, "wide_image") : main.input(0);
}

// A convolution or its weight gradient, of an image in `image_type`.
FewChannelProblem read_problem(const Node& main, DataType image_type, bool tf32) {
  const auto shape = [](const Value* value) { return value->type().static_shape(); };
  const bool gradient = main.operator_name() == "convolution_weight_gradient";
  const Attributes& attributes = main.attributes();
  FewChannelProblem problem{.type = main.output()->data_type(),
                            .image_type = image_type,
                            .x = shape(main.input(0)),
                            .weight = shape(gradient ? main.output() : main.input(1)),
                            .y = shape(gradient ? main.input(1) : main.output())};
  refuse_unless_multiplied(problem.type, tf32);
  refuse_unless(image_type == problem.type || image_type == DataType::fp32, "an image in {}",
                to_string(image_type));
  refuse_unless(problem.x.size() == 4, "{} spatial axes", problem.x.size() - 2);
  refuse_unless(attributes.integer("groups") == 1, "{} groups", attributes.integer("groups"));
  const std::vector<int64_t>& dilations = attributes.integers("dilations");
  refuse_unless(std::all_of(dilations.begin(), dilations.end(), [](int64_t value) { return value == 1; }),
                "dilation");
  const std::vector<int64_t>& strides = attributes.integers("strides");
  const std::vector<int64_t>& padding = attributes.integers("padding_low");
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
  refuse_unless(problem.x[2] * channels * problem.element_bytes() % kAccessBytes == 0,
                "rows of {} elements are no whole accesses", problem.x[2] * channels);
  const int64_t outputs = problem.outputs();
  refuse_unless(outputs == 32 || outputs == 64 || outputs == 128, "{} output channels", outputs);
  refuse_unless(element_count(problem.x) > 0 && element_count(problem.y) > 0, "a tensor without elements");
  return problem;
}

// Sets how many rows of the result a block works on at a time: `most`, or as many as shared memory holds, or
// as leave work for each multiprocessor.
void set_item_rows(FewChannelProblem& problem, int64_t most, int64_t (FewChannelProblem::*bytes)() const,
                   const GpuTraits& gpu) {
  const int64_t shared_bytes = gpu.block_shared_bytes(problem.blocks);
  problem.item_rows = std::min(most, problem.y[1]);
  const auto is_too_large = [&] {
    return (problem.*bytes)() > shared_bytes || problem.items() < gpu.multiprocessors;
  };
  while (problem.item_rows > 1 && is_too_large()) problem.item_rows /= 2;
  refuse_unless((problem.*bytes)() <= shared_bytes, "a row needs {} bytes of shared memory",
                (problem.*bytes)());
}

GeneratedProgram print_forward(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const bool statistics = backend::kernel_key(node) == "fused:convolution_statistics";
  const Node& main =
      statistics ? backend::read_convolution_statistics(node) : backend::maker_of_role(node, "y");
  const Value* image = image_of(node, main);
  backend::Epilogue epilogue;
  if (!statistics) {
    epilogue = backend::read_epilogue(node, backend::read_chain(node), kConvolutionActivations);
    refuse_unless(!epilogue.residual.has_value(), "a residual");
  }
  FewChannelProblem problem = read_problem(main, image->data_type(), request.tf32);
  // Operands of 32 bits are twice as large. With more pixels a warp reads those of the weights less often,
  // and more rows at a time share more of x, for which there is room for one block.
  const int tile_pixels = problem.in_tf32() ? 56 : 32;
  if (problem.in_tf32()) problem.blocks = 1;
  set_item_rows(problem, 8, &FewChannelProblem::forward_bytes, gpu);
  Launch run{.entry = "run",
             .blocks = std::min(problem.items(), gpu.multiprocessors * problem.blocks),
             .threads = static_cast<int>(problem.threads),
             .arguments = {}};
  run.shared_bytes = problem.forward_bytes();
  PointerList pointers(node);
  pointers.input("x", backend::input_index(node, image));
  pointers.input("weight", backend::input_index(node, main.input(1)));
  pointers.input("bias", epilogue.bias);
  pointers.output("y", 0);
  pointers.workspace("parts", 0);
  run.arguments = pointers.arguments();
  GeneratedProgram program;
  program.source =
      problem.print("few_channels.cuh", fmt::format("  static constexpr int tile_pixels = {};\n"
                                                    "  static constexpr bool statistics = {}, bias = {};\n{}",
                                                    tile_pixels, statistics, epilogue.bias.has_value(),
                                                    ending_text(epilogue.activation))) +
      calling_entry("run", run.threads, pointers, "FewChannelPointers<Problem>", "few_channel_convolution",
                    static_cast<int>(problem.blocks));
  program.launches = {run};
  if (statistics) {
    const int64_t outputs = problem.outputs();
    const int64_t sums = floats(run.blocks * outputs);
    program.workspace_bytes = 2 * sums;
    add_combine(
        program, node,
        {{.offset = 0, .results = outputs, .output = 1}, {.offset = sums, .results = outputs, .output = 2}},
        run.blocks);
  }
  return program;
}

// How many units of the window a warp of the weight gradient has. Sets the threads and the blocks.
int64_t divide_units(FewChannelProblem& problem) {
  const int64_t window_rows = problem.weight[1];
  const auto refuse_too_large = [&](bool too_large) {
    refuse_unless(!too_large && problem.outputs() <= 64, "a window of {} x {} for {} outputs", window_rows,
                  problem.weight[2], problem.outputs());
  };
  if (!problem.in_tf32()) {
    constexpr int64_t kMostWindowRows = 8;  // each has a warp, and a warp many registers
    refuse_too_large(window_rows > kMostWindowRows || problem.run_units() > 3);
    problem.threads = 32 * window_rows;
    return problem.run_units();
  }
  constexpr int64_t kMostUnits = 7;   // whose sums the registers of a warp hold
  constexpr int64_t kMostWarps = 12;  // with so many registers, of a multiprocessor
  const int64_t units =
      quotient_rounded_up(problem.units(), quotient_rounded_up(problem.units(), kMostUnits));
  const int64_t groups = quotient_rounded_up(problem.units(), units);
  refuse_too_large(groups > kMostWarps);
  if (2 * groups > kMostWarps) problem.blocks = 1;
  problem.threads = 32 * groups * (kMostWarps / problem.blocks / groups);
  return units;
}

GeneratedProgram print_gradient(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const Node& main = backend::maker_of_role(node, "weight_gradient");
  const Value* image = image_of(node, main);
  FewChannelProblem problem = read_problem(main, image->data_type(), request.tf32);
  const int64_t warp_units = divide_units(problem);
  set_item_rows(problem, 2, &FewChannelProblem::gradient_bytes, gpu);
  const int64_t groups = quotient_rounded_up(problem.units(), warp_units);
  const int64_t elements = element_count(problem.weight);
  PointerList pointers(node);
  pointers.input("x", backend::input_index(node, image));
  pointers.input("dy", backend::input_index(node, main.input(1)));
  pointers.workspace("parts", 0);
  Launch run{.entry = "run",
             .blocks = std::min(problem.items(), gpu.multiprocessors * problem.blocks),
             .threads = static_cast<int>(problem.threads),
             .arguments = pointers.arguments()};
  run.shared_bytes = problem.gradient_bytes();
  const int64_t parts = run.blocks * (problem.threads / 32 / groups);
  GeneratedProgram program;
  program.workspace_bytes = floats(parts * elements);
  program.source = problem.print("few_channel_gradient.cuh",
                                 fmt::format("  static constexpr int warp_units = {};\n", warp_units)) +
                   calling_entry("run", run.threads, pointers, "FewChannelGradientPointers<Problem>",
                                 "few_channel_gradient", static_cast<int>(problem.blocks));
  program.launches = {run};
  add_combine(program, node, {{.offset = 0, .results = elements, .output = 0}}, parts);
  return program;
}

GeneratedProgram print_program(const KernelRequest& request, const GpuTraits& gpu) {
  const std::string key = backend::kernel_key(request.node);
  const bool gradient = key == "convolution_weight_gradient" || key == "fused:convolution_weight_gradient";
  return (gradient ? print_gradient : print_forward)(request, gpu);
}

}  // namespace

KernelCandidate few_channel_candidate(Context& context) {
  return generated_candidate("few_channels", context, print_program);
}

bool takes_few_channels(const Node& convolution, bool tf32) {
  return backend::unless_refused(
             [&] { return read_problem(convolution, convolution.output()->data_type(), tf32); })
      .has_value();
}

bool takes_wide_image(const Node& node, const GpuTraits& gpu) {
  static const std::set<std::string> keys{"convolution", "fused:convolution", "fused:convolution_statistics",
                                          "convolution_weight_gradient"};
  return keys.contains(backend::kernel_key(node)) &&
         backend::unless_refused([&] { return print_program({.node = node}, gpu); }).has_value();
}

}  // namespace tessera::cuda
