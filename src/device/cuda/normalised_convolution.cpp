#include "device/cuda/normalised_convolution.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/device/common/normalised_bodies.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/pointwise_program.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

// The problem P of kernels/normalised_convolution.cuh.
struct NormalisedInputProblem : PointwiseProblem {
  size_t norms;
  bool shortcut;
  int64_t slice = 0;

  NormalisedInputProblem(const Node& convolution, size_t normalisations, bool has_shortcut,
                         const GpuTraits& gpu)
      : PointwiseProblem(convolution, *convolution.input(0), *convolution.output()),
        norms(normalisations),
        shortcut(has_shortcut) {
    constexpr int64_t kMostWeights = 65536;  // in the registers of a block
    constexpr int64_t kCheapInputs = 128;    // that each slice may normalise by itself
    refuse_unless(norms == 1 || norms == 2, "{} normalisations", norms);
    refuse_unless(inputs == 64 || inputs == 128 || inputs == 256 || inputs == 512, "{} channels of x",
                  inputs);
    for (const int64_t wanted : {256, 128, 64}) {
      const bool whole =
          outputs == wanted || (outputs % wanted == 0 && wanted > 64 && inputs <= kCheapInputs);
      if (slice == 0 && whole && inputs * wanted <= kMostWeights) slice = wanted;
    }
    refuse_unless(slice > 0, "{} channels of the result", outputs);
    set_stages(item_elements(), 0, gpu);
  }

  int64_t item_elements() const {
    constexpr int64_t kPadding = 8;
    return item * static_cast<int64_t>(norms + (shortcut ? 1 : 0)) * (inputs + kPadding);
  }
  int64_t slices() const { return outputs / slice; }
  // Of warps, each of which adds up pixels of its own.
  int64_t teams() const { return slice < 128 ? 2 : 1; }
};

GeneratedProgram normalised_convolution(const Node& node, const GpuTraits& gpu) {
  const backend::NormalisedConvolutionBody body = backend::parse_normalised_convolution(node);
  const NormalisedInputProblem problem(*body.convolution, body.x.size(), body.shortcut.has_value(), gpu);
  PointerList pointers(node);
  const auto both = [&](const std::vector<size_t>& inputs) {
    pointers.input(inputs[0]);
    pointers.input(inputs.size() > 1 ? std::optional(inputs[1]) : std::nullopt);
  };
  both(body.x);
  pointers.input(body.shortcut);
  both(body.mean);
  both(body.factor);
  both(body.bias);
  pointers.input(body.weight);
  pointers.output(0);
  pointers.output(3);

  const int64_t slices = problem.slices();
  const int64_t blocks = std::min(problem.items(), std::max<int64_t>(gpu.multiprocessors / slices, 1));
  const int64_t chunks = blocks * problem.teams();
  GeneratedProgram program;
  program.source = problem.print(
      "normalised_convolution.cuh",
      fmt::format("inputs = {}, outputs = {}, slice = {}, norms = {}, shortcut = {}", problem.inputs,
                  problem.outputs, problem.slice, problem.norms, static_cast<int>(problem.shortcut)));
  add_run(program, pointers, fmt::format("NormalisedConvolutionPointers<{}>", device_type(problem.type)),
          "normalised_convolution", {0}, blocks * slices,
          problem.bytes_of(problem.stages * problem.item_elements()));
  const int64_t sums = floats(chunks * problem.outputs);
  program.workspace_bytes = 2 * sums;
  add_combine(program, node,
              {{.offset = 0, .results = problem.outputs, .output = 1},
               {.offset = sums, .results = problem.outputs, .output = 2}},
              chunks);
  return program;
}

const GeneratedRegistration kNormalised("fused:normalised_convolution", normalised_convolution);

}  // namespace

bool takes_normalised_input(const Node& convolution, size_t normalisations, bool shortcut,
                            const GpuTraits& gpu) {
  return takes<NormalisedInputProblem>(&PointwiseProblem::inputs, convolution, normalisations, shortcut, gpu);
}

}  // namespace tessera::cuda
