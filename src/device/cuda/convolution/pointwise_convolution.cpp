#include "device/cuda/convolution/pointwise_convolution.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/convolution_patterns.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"

#include "device/cuda/convolution/pointwise_program.h"
#include "kernels/block_sizes.h"
#include "kernels/pointwise_layout.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int64_t kMostWeightBytes = 131072;  // in the registers of a block
constexpr int64_t kLeastColumns = 128;        // of a block's registers: narrower slices stand in them twice
constexpr int64_t kCheapInputs = 128;         // that each slice may normalize by itself
constexpr std::initializer_list<int64_t> kSlices = {256, 128, 64};  // that the warps divide among them

// The problem P of kernels/pointwise_convolution.cuh.
struct PointwiseConvolutionProblem : PointwiseProblem {
  size_t norms = 0;
  bool prologue_residual = false;
  bool keeps = false;
  backend::Epilogue epilogue;
  int64_t slice = 0;

  PointwiseConvolutionProblem(const Node& convolution, bool tf32)
      : PointwiseProblem(convolution, *convolution.input(0), *convolution.output(), tf32) {
    refuse_unless(inputs == 64 || inputs == 128 || inputs == 256 || inputs == 512, "{} channels of x",
                  inputs);
  }

  int64_t item_elements() const {
    const PointwiseConvolutionLayout layout{element_bytes(),
                                            item,
                                            inputs,
                                            slice,
                                            static_cast<int64_t>(norms),
                                            prologue_residual,
                                            epilogue.residual.has_value()};
    return layout.stage_elements();
  }
  int64_t slices() const { return outputs / slice; }
  // Of warps, which share the pixels: each of the kernel's 8 warps has slice * teams / 8 columns.
  int64_t teams() const { return slice < kLeastColumns ? 2 : 1; }
  int64_t blocks_of_slice(const GpuTraits& gpu) const {
    return std::min(items(), std::max<int64_t>(gpu.multiprocessors / slices(), 1));
  }

  // The widest slice that takes the outputs apart evenly, of at most so many.
  void set_slice(int64_t most_slices, const GpuTraits& gpu) {
    for (const int64_t own : kSlices) {
      const bool fits = bytes_of(inputs * std::max(own, kLeastColumns)) <= kMostWeightBytes;
      if (slice == 0 && outputs % own == 0 && fits) slice = own;
    }
    refuse_unless(slice > 0, "{} channels of the result", outputs);
    refuse_unless(slices() <= most_slices, "{} channels of the result in slices of {}", outputs, slice);
    if (teams() > 1) item = kItem;  // 16 pixels for each
    set_stages(item_elements(), 0, gpu);
  }

  void add_to(GeneratedProgram& program, const PointerList& pointers, bool statistics,
              const GpuTraits& gpu) const {
    program.source = print("pointwise_convolution.cuh",
                           fmt::format("inputs = {}, outputs = {}, slice = {}, teams = {}, norms = {}, "
                                       "prologue_residual = {:d}, keeps = {:d}, "
                                       "statistics = {:d}, bias = {:d}, residual = {:d}, relu = {:d}",
                                       inputs, outputs, slice, teams(), norms, prologue_residual, keeps,
                                       statistics, epilogue.bias.has_value(), epilogue.residual.has_value(),
                                       epilogue.activation != nullptr));
    add_run(program, pointers, fmt::format("PointwiseConvolutionPointers<{}>", device_type(type)),
            "pointwise_convolution", blocks_of_slice(gpu) * slices(), bytes_of(stages * item_elements()),
            kPointwiseThreads);
  }
};

struct NormalizedInputProblem : PointwiseConvolutionProblem {
  NormalizedInputProblem(const Node& convolution, size_t normalizations, bool has_prologue_residual,
                         bool tf32, const GpuTraits& gpu)
      : PointwiseConvolutionProblem(convolution, tf32) {
    refuse_unless(normalizations == 1 || normalizations == 2, "{} normalizations", normalizations);
    norms = normalizations;
    prologue_residual = has_prologue_residual;
    set_slice(inputs <= kCheapInputs ? outputs : 1, gpu);
  }
};

// Without normalizations: cuDNN has statistics of 16 bits alone, and in no fixed order.
struct StatisticsProblem : PointwiseConvolutionProblem {
  StatisticsProblem(const Node& convolution, bool tf32, bool deterministic, const GpuTraits& gpu)
      : PointwiseConvolutionProblem(convolution, tf32) {
    constexpr int64_t kMostSlices = 2;  // each reads x, and the more of them the fewer products to a read
    refuse_unless(type == DataType::fp32 || deterministic, "left to cuDNN in 16 bits");
    set_slice(kMostSlices, gpu);
  }
};

// Of the result, as outputs 1 and 2 of the node.
void add_statistics(GeneratedProgram& program, const Node& node, const PointwiseConvolutionProblem& problem,
                    const PointerList& pointers, const GpuTraits& gpu) {
  const int64_t chunks = problem.blocks_of_slice(gpu) * problem.teams();
  const int64_t sums = floats(chunks * problem.outputs);
  problem.add_to(program, pointers, true, gpu);
  program.workspace_bytes = 2 * sums;
  add_combine(program, node,
              {{.offset = 0, .results = problem.outputs, .output = 1},
               {.offset = sums, .results = problem.outputs, .output = 2}},
              chunks);
}

GeneratedProgram convolution_statistics(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const Node& convolution = backend::read_convolution_statistics(node);
  const StatisticsProblem problem(convolution, request.tf32, request.deterministic, gpu);
  PointerList pointers(node);
  pointers.input("x[0]", backend::input_index(node, convolution.input(0)));
  pointers.input("weight", backend::input_index(node, convolution.input(1)));
  pointers.output("result", 0);
  pointers.workspace("parts", 0);
  GeneratedProgram program;
  add_statistics(program, node, problem, pointers, gpu);
  return program;
}

GeneratedProgram normalized_convolution(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const backend::NormalizedConvolutionBody body = backend::read_normalized_convolution(node);
  NormalizedInputProblem problem(*body.convolution, body.x.size(), body.residual.has_value(), request.tf32,
                                 gpu);
  problem.keeps = body.keeps;
  PointerList pointers(node);
  pointers.inputs("x", body.x);
  pointers.input("prologue_residual", body.residual);
  pointers.inputs("mean", body.mean);
  pointers.inputs("factor", body.factor);
  pointers.inputs("bias", body.bias);
  pointers.input("weight", body.weight);
  pointers.output("result", 0);
  if (body.keeps) pointers.output("y", 3);
  pointers.workspace("parts", 0);

  GeneratedProgram program;
  add_statistics(program, node, problem, pointers, gpu);
  return program;
}

// cuDNN is as fast without a residual, and where the cache holds the result.
GeneratedProgram residual_convolution(const Node& node, const GpuTraits& gpu) {
  const backend::FusedChain chain = backend::read_chain(node);
  PointwiseConvolutionProblem problem(*chain.main, false);
  problem.epilogue = backend::read_epilogue(node, chain, {"relu"});
  refuse_unless(problem.epilogue.residual.has_value(), "no residual");
  const int64_t bytes = problem.bytes_of(problem.pixels * problem.outputs);
  refuse_unless(bytes >= kLeastUncachedBytes, "a result of {} bytes", bytes);
  problem.set_slice(problem.outputs, gpu);
  PointerList pointers(node);
  pointers.input("x[0]", backend::input_index(node, chain.main->input(0)));
  pointers.input("weight", backend::input_index(node, chain.main->input(1)));
  pointers.input("bias_of_result", problem.epilogue.bias);
  pointers.input("residual", problem.epilogue.residual);
  pointers.output("result", 0);
  GeneratedProgram program;
  problem.add_to(program, pointers, false, gpu);
  return program;
}

const GeneratedRegistration kNormalized("fused:normalized_convolution", normalized_convolution);

}  // namespace

KernelCandidate residual_convolution_candidate(Context& context) {
  return generated_candidate("residual_convolution", context,
                             [](const KernelRequest& request, const GpuTraits& gpu) {
                               return residual_convolution(request.node, gpu);
                             });
}

KernelCandidate pointwise_statistics_candidate(Context& context) {
  return generated_candidate("pointwise_convolution", context, convolution_statistics);
}

bool takes_pointwise_statistics(const Node& convolution, bool tf32, bool deterministic,
                                const GpuTraits& gpu) {
  return worthwhile<StatisticsProblem>(&PointwiseProblem::outputs, convolution, tf32, deterministic, gpu)
      .has_value();
}

bool takes_normalized_input(const Node& convolution, size_t normalizations, bool prologue_residual, bool tf32,
                            const GpuTraits& gpu) {
  return worthwhile<NormalizedInputProblem>(&PointwiseProblem::inputs, convolution, normalizations,
                                            prologue_residual, tf32, gpu)
      .has_value();
}

}  // namespace tessera::cuda
