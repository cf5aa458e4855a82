// layer_norm(residual + dropout(branch + bias)) in one kernel, and its gradient in one with a second for the
// sums over rows; both take norms alone, too.
#include "tessera/device/common/residual_layer_norm.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/codegen/partial_sums.h"
#include "device/cuda/kernel_registry.h"
#include "device/cuda/normalization/cudnn_norm.h"

namespace tessera::cuda {
namespace {

// Who has which channels of a row: kernels/residual_layer_norm.cuh.
struct RowPlan {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t width = 1;
  int64_t packs = 1;
  int64_t threads = 32;
  int64_t group = 1;

  int64_t groups() const { return quotient_rounded_up(rows, group); }
};

// More in registers leaves too few threads to fill a multiprocessor.
constexpr int64_t kMostElementsOfAThread = 8;
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kPreferredThreads = 256;

// `bytes`: so many a thread reads of an operand before it adds up anything.
RowPlan plan_rows(const Value& x, int64_t bytes) {
  RowPlan plan;
  plan.channels = x.type().static_shape().back();
  plan.rows = x.type().element_count() / plan.channels;
  plan.width = 16 / static_cast<int64_t>(size_of(x.data_type()));
  while (plan.channels % plan.width != 0) plan.width /= 2;
  const auto takes_row = [&] { return plan.threads * plan.packs * plan.width >= plan.channels; };
  while (!takes_row() && plan.threads < kPreferredThreads) plan.threads *= 2;
  while (!takes_row() && 2 * plan.packs * plan.width <= kMostElementsOfAThread) plan.packs *= 2;
  while (!takes_row() && plan.threads < kMostThreads) plan.threads *= 2;
  backend::refuse_unless(takes_row(), "rows of {} elements", plan.channels);
  const int64_t row_bytes = plan.packs * plan.width * static_cast<int64_t>(size_of(x.data_type()));
  plan.group = std::clamp<int64_t>(bytes / row_bytes, 1, 4);
  return plan;
}

// Of a norm's body, or of its gradient's.
template <typename Body>
GeneratedProgram start_program(const RowPlan& plan, const Body& body, const Value& x, double epsilon) {
  const backend::DropoutBody dropout = body.dropout.value_or(backend::DropoutBody{});
  GeneratedProgram program;
  program.source = fmt::format(
      "#include \"reduce.cuh\"\n#include \"residual_layer_norm.cuh\"\nusing namespace tessera;\n"
      "struct Problem {{\n  using T = {};\n  static constexpr int threads = {}, width = {}, packs = {}, "
      "group = {};\n"
      "  static constexpr int64 rows = {};\n  static constexpr int channels = {};\n"
      "  static constexpr uint32 stream = {}u;\n"
      "  static constexpr float rate = {}, factor = {}, epsilon = {};\n"
      "  static constexpr bool centered = {};\n}};\n",
      device_type(x.data_type()), plan.threads, plan.width, plan.packs, plan.group, plan.rows, plan.channels,
      static_cast<uint32_t>(dropout.stream), float_literal(dropout.rate), float_literal(dropout.factor),
      float_literal(epsilon), body.centered);
  return program;
}

GeneratedProgram forward(const Node& node, const GpuTraits& gpu) {
  const backend::ResidualLayerNormBody body = backend::read_residual_layer_norm(node);
  const Value& x = *node.input(body.branch);
  constexpr int64_t kBytesAtATime = 32;
  const RowPlan plan = plan_rows(x, kBytesAtATime);
  GeneratedProgram program = start_program(plan, body, x, body.epsilon);
  PointerList pointers(node);
  pointers.input("branch", body.branch);
  pointers.input("bias", body.bias);
  pointers.input("residual", body.residual);
  pointers.input("scale", body.scale);
  pointers.input("shift", body.shift);
  if (body.dropout.has_value()) pointers.input("counter", body.dropout->counter);
  pointers.output("sum", body.sum);
  pointers.output("y", body.y);
  pointers.output("mean", body.mean);
  pointers.output("inverse", body.inverse_deviation);
  add_run(program, pointers, "ResidualLayerNorm<Problem>", "residual_layer_norm",
          blocks_for(plan.groups() * plan.threads, static_cast<int>(plan.threads), gpu), 0,
          static_cast<int>(plan.threads));
  // Each thread has read a place before it writes it, and no other reads it.
  program.may_overwrite = [body](size_t output, size_t input) {
    return (output == body.y || output == body.sum) && (input == body.branch || input == body.residual);
  };
  return program;
}

GeneratedProgram gradient(const Node& node, const GpuTraits& gpu) {
  // So many have the registers that they need; more blocks would begin when others end. Each leaves parts to
  // add up.
  constexpr int64_t kThreadsOfAMultiprocessor = 384;
  constexpr int64_t kBytesAtATime = 64;
  const backend::ResidualLayerNormGradientBody body = backend::read_residual_layer_norm_gradient(node);
  const Value& x = *node.input(body.sum);
  const RowPlan plan = plan_rows(x, kBytesAtATime);
  const int64_t blocks = std::min(
      plan.groups(), gpu.multiprocessors * std::max(int64_t{1}, kThreadsOfAMultiprocessor / plan.threads));
  GeneratedProgram program = start_program(plan, body, x, 0);
  PointerList pointers(node);
  pointers.input("dy", body.dy);
  pointers.input("sum", body.sum);
  pointers.input("incoming", body.incoming);
  pointers.input("scale", body.scale);
  pointers.input("mean", body.mean);
  pointers.input("inverse", body.inverse_deviation);
  if (body.dropout.has_value()) pointers.input("counter", body.dropout->counter);
  pointers.output("dsum", body.dsum);
  pointers.output("dbranch", body.dbranch);
  const int64_t bytes = round_up(floats(blocks * plan.channels), int64_t{256});
  std::vector<Combination> sums;
  const auto add_sum = [&](std::string_view field, const std::optional<size_t>& output) {
    if (!output.has_value()) return;
    pointers.workspace(field, program.workspace_bytes);
    sums.push_back({.offset = program.workspace_bytes, .results = plan.channels, .output = *output});
    program.workspace_bytes += bytes;
  };
  add_sum("dscale", body.dscale);
  add_sum("dshift", body.dshift);
  add_sum("dbias", body.dbias);
  add_run(program, pointers, "ResidualLayerNormGradient<Problem>", "residual_layer_norm_gradient", blocks, 0,
          static_cast<int>(plan.threads));
  if (!sums.empty()) add_combine(program, node, sums, blocks);
  // A thread has read its places of a row before it writes the first of them, and no other reads them.
  program.may_overwrite = [body](size_t output, size_t input) {
    return (output == body.dbranch || output == body.dsum) &&
           (input == body.dy || input == body.sum || input == body.incoming);
  };
  return program;
}

KernelCandidate alone(const std::string& name, Context& context,
                      GeneratedProgram (*print)(const Node& node, const GpuTraits& gpu)) {
  return generated_candidate(name, context, [print](const KernelRequest& request, const GpuTraits& gpu) {
    return print(request.node, gpu);
  });
}

const CudaKernelRegistration kAlone(
    {.key = "layer_norm",
     .candidates =
         [](const Node& node, Context& context) {
           return std::vector{alone("layer_norm", context, forward), cudnn_norm_candidate(node, context)};
         },
     .tunable = true});
const CudaKernelRegistration kGradientAlone({.key = "layer_norm_gradient",
                                             .candidates =
                                                 [](const Node& node, Context& context) {
                                                   return std::vector{
                                                       cudnn_norm_candidate(node, context),
                                                       alone("layer_norm_gradient", context, gradient)};
                                                 },
                                             .tunable = true});
const GeneratedRegistration kForward("fused:residual_layer_norm", forward);
const GeneratedRegistration kGradient("fused:residual_layer_norm_gradient", gradient);

}  // namespace
}  // namespace tessera::cuda
