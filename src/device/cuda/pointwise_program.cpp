#include "device/cuda/pointwise_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/rounding.h"
#include "tessera/device/common/refusal.h"
#include "tessera/passes/fuse.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int kThreads = 256;

}  // namespace

PointwiseProblem::PointwiseProblem(const Node& node, const Value& x, const Value& y, bool tf32)
    : type(x.data_type()),
      pixels(x.type().element_count()),
      inputs(x.type().static_shape().back()),
      outputs(y.type().static_shape().back()) {
  refuse_unless(is_pointwise(node), "windows, strides, padding or groups");
  refuse_unless_multiplied(type, tf32);
  if (type == DataType::fp32) item = kItem / 2;
  refuse_unless(pixels > 0, "a tensor without elements");
  pixels /= inputs;
  constexpr int64_t kMostPixels = int64_t{1} << 30;  // an int holds those of the items ahead too
  refuse_unless(pixels < kMostPixels, "{} pixels", pixels);
}

int64_t PointwiseProblem::items() const {
  return quotient_rounded_up(pixels, item);
}

int64_t PointwiseProblem::stages_in(int64_t elements, int64_t others, const GpuTraits& gpu) const {
  return (gpu.block_shared_bytes(1) - bytes_of(others)) / bytes_of(elements);
}

void PointwiseProblem::set_stages(int64_t elements, int64_t others, const GpuTraits& gpu, int64_t most) {
  stages = std::min(stages_in(elements, others, gpu), most);
  refuse_unless(stages >= kLeastStages, "items of {} bytes", bytes_of(elements));
}

void add_both(PointerList& pointers, const std::vector<size_t>& inputs) {
  for (size_t norm = 0; norm < 2; ++norm)
    pointers.input(norm < inputs.size() ? std::optional(inputs[norm]) : std::nullopt);
}

std::string PointwiseProblem::print(std::string_view header, const std::string& constants) const {
  return fmt::format(
      "#include \"{}\"\nusing namespace tessera;\nstruct Problem {{\n  using Element = {};\n"
      "  static constexpr int pixels = {}, item = {}, stages = {}, {};\n}};\n",
      header, device_type(type), pixels, item, stages, constants);
}

void add_run(GeneratedProgram& program, const PointerList& pointers, const std::string& structure,
             std::string_view function, const std::vector<int64_t>& workspace, int64_t blocks,
             int64_t shared_bytes) {
  Launch launch{.entry = "run", .blocks = blocks, .threads = kThreads, .arguments = pointers.arguments()};
  launch.shared_bytes = shared_bytes;
  std::string parameters = pointers.parameters(), fields = pointers.fields();
  for (size_t n = 0; n < workspace.size(); ++n) {
    launch.arguments.push_back({Argument::Kind::workspace, workspace[n]});
    parameters += fmt::format(", float* parts{}", n);
    fields += fmt::format(", parts{}", n);
  }
  program.source += entry_text("run", kThreads, parameters,
                               fmt::format("  {}<Problem>({}{{{}}});\n", function, structure, fields), 1);
  program.launches.push_back(std::move(launch));
}

void add_combine(GeneratedProgram& program, const Node& node, const std::vector<Combination>& all,
                 int64_t chunks) {
  constexpr int64_t kResultsOfABlock = 8;
  PointerList pointers(node);
  for (const Combination& own : all) pointers.output(own.output);
  Launch launch{.entry = "combine", .threads = kThreads, .arguments = pointers.arguments()};
  std::string parameters = pointers.parameters(), text;
  for (size_t n = 0; n < all.size(); ++n) {
    launch.arguments.push_back({Argument::Kind::workspace, all[n].offset});
    parameters += fmt::format(", const float* parts{}", n);
    const int64_t blocks = quotient_rounded_up(all[n].results, kResultsOfABlock);
    text += fmt::format(
        "  if (block >= 0 && block < {}) combine_chunks<Sum>(block, parts{}, {}, {}, 1.0, y{});\n"
        "  block -= {};\n",
        blocks, n, all[n].results, chunks, all[n].output, blocks);
    launch.blocks += blocks;
  }
  program.source +=
      entry_text("combine", kThreads, parameters, "  int block = static_cast<int>(blockIdx.x);\n" + text);
  program.launches.push_back(std::move(launch));
}

}  // namespace tessera::cuda
