#include "device/cuda/pointwise_gradients.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/rounding.h"
#include "tessera/device/common/gradient_bodies.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/generated_kernel.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int kThreads = 256;
constexpr int64_t kItem = 32;          // pixels
constexpr int64_t kReserved = 1024;    // bytes of shared memory, by the driver for each block
constexpr int64_t kStages[] = {4, 3};  // what is tried
constexpr int64_t kPadding = 8;        // elements, of a row of a padded tile

// A pointwise convolution from `inputs` to `outputs` channels.
struct PointwiseProblem {
  DataType type = DataType::fp16;
  int64_t pixels = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t stages = 0;

  explicit PointwiseProblem(const Node& data_gradient)
      : type(data_gradient.output()->data_type()),
        pixels(data_gradient.output()->type().element_count()),
        inputs(data_gradient.output()->type().static_shape().back()),
        outputs(data_gradient.input(0)->type().static_shape().back()) {
    refuse_unless(type == DataType::fp16 || type == DataType::bf16, "not for {}", to_string(type));
    refuse_unless(pixels > 0, "a tensor without elements");
    pixels /= inputs;
    refuse_unless(pixels * std::max(inputs, outputs) < (int64_t{1} << 31) && pixels < (int64_t{1} << 30),
                  "{} pixels", pixels);
  }

  int64_t bytes_of(int64_t elements) const { return elements * static_cast<int64_t>(size_of(type)); }
  int64_t items() const { return quotient_rounded_up(pixels, kItem); }

  // As many items in shared memory, of so many elements each, as a multiprocessor holds beside `others`
  // elements.
  void set_stages(int64_t elements, int64_t others, const GpuTraits& gpu) {
    const int64_t room = gpu.shared_bytes - kReserved;
    for (const int64_t wanted : kStages) {
      if (bytes_of(wanted * elements + others) > room) continue;
      stages = wanted;
      return;
    }
    refuse_unless(false, "an item of {} bytes", bytes_of(elements));
  }

  std::string print(std::string_view header, int64_t narrow, int64_t wide, const std::string& others) const {
    return fmt::format(
        "#include \"{}\"\nusing namespace tessera;\nstruct Problem {{\n  using Element = {};\n"
        "  static constexpr int pixels = {}, narrow = {}, wide = {}, stages = {}{};\n}};\n",
        header, device_type(type), pixels, narrow, wide, stages, others);
  }
};

// The problem P of kernels/summed_gradients.cuh: narrow are the convolution's outputs, wide its inputs.
struct SummedProblem : PointwiseProblem {
  size_t norms;
  int64_t slice = 0;

  SummedProblem(const Node& data_gradient, size_t normalisations, const GpuTraits& gpu)
      : PointwiseProblem(data_gradient), norms(normalisations) {
    constexpr int64_t kMostWeights = 16384;  // in the registers of a block
    refuse_unless(norms == 1 || norms == 2, "{} normalisations", norms);
    refuse_unless(outputs == 64 || outputs == 128, "{} channels of dy", outputs);
    for (const int64_t wanted : {256, 128}) {
      if (slice == 0 && inputs % wanted == 0 && outputs * wanted <= kMostWeights) slice = wanted;
    }
    refuse_unless(slice > 0, "{} channels of x", inputs);
    set_stages(item_elements(), 0, gpu);
  }

  int64_t item_elements() const { return kItem * ((2 + static_cast<int64_t>(norms)) * slice + outputs); }
  int64_t slices() const { return inputs / slice; }
};

// The problem P of kernels/normalised_gradients.cuh: wide are the convolution's outputs, narrow its inputs.
struct NormalisedProblem : PointwiseProblem {
  NormalisedProblem(const Node& data_gradient, const GpuTraits& gpu) : PointwiseProblem(data_gradient) {
    refuse_unless(inputs == 64, "{} channels of x", inputs);
    refuse_unless(outputs == 128 || outputs == 256, "{} channels of dy", outputs);
    set_stages(item_elements(), slopes(), gpu);
  }

  int64_t item_elements() const { return kItem * (2 * outputs + inputs + kPadding); }
  int64_t slopes() const { return 2 * kItem * (outputs + kPadding); }
};

// Entry `run` with pointers of the node, as fields of what `function` takes, and after them floats in the
// workspace at the given offsets.
struct RunEntry {
  Launch launch;
  std::string text;
};
RunEntry run_entry(const PointerList& pointers, const std::string& structure, std::string_view function,
                   const std::vector<int64_t>& workspace) {
  RunEntry run{{.entry = "run", .threads = kThreads, .arguments = pointers.arguments()}, ""};
  std::string parameters = pointers.parameters(), fields = pointers.fields();
  for (size_t n = 0; n < workspace.size(); ++n) {
    run.launch.arguments.push_back({Argument::Kind::workspace, workspace[n]});
    parameters += fmt::format(", float* parts{}", n);
    fields += fmt::format(", parts{}", n);
  }
  run.text = fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}, 1) run({}) {{\n  {}<Problem>({}{{{}}});\n}}\n",
      kThreads, parameters, function, structure, fields);
  return run;
}

// What combine_chunks makes of the parts of blocks: results of an output of the node.
struct Combination {
  int64_t offset = 0;  // of the parts in the workspace
  int64_t results = 0;
  size_t output = 0;
};

// Entry `combine`: every combination, in one launch.
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
  program.source += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}) combine({}) {{\n  int block = "
      "static_cast<int>(blockIdx.x);\n{}}}\n",
      kThreads, parameters, text);
  program.launches.push_back(std::move(launch));
}

constexpr int64_t floats(int64_t count) {
  return count * static_cast<int64_t>(sizeof(float));
}

GeneratedProgram summed(const Node& node, const GpuTraits& gpu) {
  const backend::SummedGradientsBody body = backend::parse_summed_gradients(node);
  const SummedProblem problem(*body.sum.data, body.x.size(), gpu);
  PointerList pointers(node);
  for (const size_t input : {body.dy, body.weight, *body.sum.mask, body.sum.addend}) pointers.input(input);
  const auto both = [&](const std::vector<size_t>& inputs) {
    pointers.input(inputs[0]);
    pointers.input(inputs.size() > 1 ? std::optional(inputs[1]) : std::nullopt);
  };
  both(body.x);
  both(body.mean);
  pointers.output(0);

  const int64_t slices = problem.slices();
  const int64_t blocks =
      std::min(problem.items(), std::max<int64_t>(gpu.multiprocessors / slices, 1));  // of a slice
  const int64_t weights = problem.inputs * problem.outputs;
  const int64_t sum_parts = floats(blocks * weights);
  RunEntry run = run_entry(pointers, fmt::format("SummedGradientsPointers<{}>", device_type(problem.type)),
                           "summed_gradients", {0, sum_parts});
  run.launch.blocks = blocks * slices;
  run.launch.shared_bytes = problem.bytes_of(problem.stages * problem.item_elements());
  GeneratedProgram program;
  program.source = problem.print("summed_gradients.cuh", problem.outputs, problem.inputs,
                                 fmt::format(", slice = {}, norms = {}", problem.slice, problem.norms)) +
                   run.text;
  program.launches = {std::move(run.launch)};
  std::vector<Combination> combinations{{.offset = 0, .results = weights, .output = 1}};
  for (size_t sum = 0; sum <= problem.norms; ++sum)
    combinations.push_back({.offset = sum_parts + floats(static_cast<int64_t>(sum) * blocks * problem.inputs),
                            .results = problem.inputs,
                            .output = 2 + sum});
  program.workspace_bytes = combinations.back().offset + floats(blocks * problem.inputs);
  add_combine(program, node, combinations, blocks);
  return program;
}

GeneratedProgram normalised(const Node& node, const GpuTraits& gpu) {
  const backend::NormalisedGradientsBody body = backend::parse_normalised_gradients(node);
  const NormalisedProblem problem(*body.data, gpu);
  PointerList pointers(node);
  for (const size_t input : {body.dy, body.y, body.x, body.weight, body.factor, body.slant, body.offset})
    pointers.input(input);
  pointers.output(0);

  const int64_t blocks = std::min<int64_t>(problem.items(), gpu.multiprocessors);
  const int64_t weights = problem.inputs * problem.outputs;
  RunEntry run =
      run_entry(pointers, fmt::format("NormalisedGradientsPointers<{}>", device_type(problem.type)),
                "normalised_gradients", {0});
  run.launch.blocks = blocks;
  run.launch.shared_bytes = problem.bytes_of(problem.stages * problem.item_elements() + problem.slopes());
  GeneratedProgram program;
  program.source = problem.print("normalised_gradients.cuh", problem.inputs, problem.outputs, "") + run.text;
  program.launches = {std::move(run.launch)};
  program.workspace_bytes = floats(blocks * weights);
  add_combine(program, node, {{.offset = 0, .results = weights, .output = 1}}, blocks);
  return program;
}

// Whether the problem is one of the kernel's, and its widest tensor does not fit the cache, where the passes
// over it that the kernel saves cost little.
template <typename Problem, typename... Arguments>
bool takes(int64_t PointwiseProblem::*widest, const Arguments&... arguments) {
  constexpr int64_t kLeastBytes = int64_t{32} << 20;
  try {
    const Problem problem(arguments...);
    return problem.bytes_of(problem.pixels * problem.*widest) >= kLeastBytes;
  } catch (const Error& refusal) {
    if (refusal.code() != ErrorCode::unsupported) throw;
    return false;
  }
}

const GeneratedRegistration kSummed("fused:summed_gradients", summed);
const GeneratedRegistration kNormalised("fused:normalised_gradients", normalised);

}  // namespace

bool takes_summed_gradients(const Node& data_gradient, size_t normalisations, const GpuTraits& gpu) {
  return takes<SummedProblem>(&PointwiseProblem::inputs, data_gradient, normalisations, gpu);
}

bool takes_normalised_gradients(const Node& data_gradient, const GpuTraits& gpu) {
  return takes<NormalisedProblem>(&PointwiseProblem::outputs, data_gradient, gpu);
}

}  // namespace tessera::cuda
