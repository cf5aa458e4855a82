#include "device/cuda/convolution/pointwise_gradients.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/device/common/convolution_patterns.h"
#include "tessera/device/common/refusal.h"

#include "device/cuda/convolution/pointwise_program.h"
#include "kernels/block_sizes.h"
#include "kernels/pointwise_layout.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int64_t kMostAhead = 192;  // pixels in shared memory, with warpgroups; more gain nothing

enum class Mask { read, recomputed };

// The problem P of kernels/summed_gradients.cuh, or of its fellow for GPUs whose warpgroups multiply: narrow
// are the convolution's outputs, wide its inputs.
struct SummedProblem : PointwiseProblem {
  size_t norms;
  bool recompute;  // the mask is recomputed
  bool weights;    // the weight gradient is made too
  bool warpgroups;
  int64_t slice = 0;

  SummedProblem(const Node& data_gradient, size_t normalizations, Mask mask, bool tf32, const GpuTraits& gpu)
      : PointwiseProblem(data_gradient, *data_gradient.output(), *data_gradient.input(0), tf32),
        norms(normalizations),
        recompute(mask == Mask::recomputed),
        weights(outputs <= 128),
        warpgroups(gpu.architecture == 90 && type != DataType::fp32) {
    // In the registers of a block: sums of the weight gradient and half as many weights, or weights alone.
    const int64_t most_weights = weights ? 16384 : 32768;
    refuse_unless(norms == 1 || norms == 2, "{} normalizations", norms);
    refuse_unless(outputs == 64 || outputs == 128 || outputs == 256, "{} channels of dy", outputs);
    for (const int64_t wanted : {256, 128}) {
      const bool fits = warpgroups ? wanted == 128 : outputs * wanted <= most_weights;
      if (slice == 0 && inputs % wanted == 0 && fits) slice = wanted;
    }
    refuse_unless(slice > 0, "{} channels of x", inputs);
    if (warpgroups && stages_in(2 * item_elements(), others(), gpu) >= kLeastStages) item = 2 * kItem;
    set_stages(item_elements(), others(), gpu, warpgroups ? kMostAhead / item : 4);
  }

  SummedGradientsLayout layout() const {
    return {element_bytes(), item, slice, outputs, static_cast<int64_t>(norms)};
  }
  int64_t item_elements() const {
    const WarpgroupSummedGradientsLayout of_warpgroups{item, slice, outputs, static_cast<int64_t>(norms),
                                                       recompute};
    return warpgroups ? of_warpgroups.stage_elements() : layout().stage_elements();
  }
  int64_t others() const { return warpgroups ? 0 : elements_of_floats(layout().numbers()); }
  int64_t slices() const { return inputs / slice; }
};

// The problem P of kernels/normalized_gradients.cuh: wide are the convolution's outputs, narrow its inputs.
struct NormalizedProblem : PointwiseProblem {
  NormalizedProblem(const Node& data_gradient, bool tf32, const GpuTraits& gpu)
      : PointwiseProblem(data_gradient, *data_gradient.output(), *data_gradient.input(0), tf32) {
    refuse_unless(inputs == 64, "{} channels of x", inputs);
    refuse_unless(outputs == 128 || outputs == 256, "{} channels of dy", outputs);
    set_stages(item_elements(), others(), gpu);
  }

  NormalizedGradientsLayout layout() const { return {element_bytes(), item, outputs, inputs}; }
  int64_t item_elements() const { return layout().stage_elements(); }
  int64_t others() const { return 2 * layout().gradient_elements() + elements_of_floats(layout().numbers()); }
  int64_t shared_bytes() const { return bytes_of(stages * item_elements() + others()); }
};

GeneratedProgram summed(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const backend::SummedGradientsBody body = backend::read_summed_gradients(node);
  const bool recompute = !body.recomputed.empty();
  const SummedProblem problem(*body.sum.data, body.x.size(), recompute ? Mask::recomputed : Mask::read,
                              request.tf32, gpu);
  refuse_unless(body.weights == problem.weights, "the weight gradient of {} channels", problem.outputs);
  PointerList pointers(node);
  pointers.input("dy", body.dy);
  pointers.input("weight", body.weight);
  pointers.input("input", body.mask);
  pointers.input("addend", body.sum.addend);
  pointers.inputs("x", body.x);
  pointers.inputs("mean", body.mean);
  for (size_t norm = 0; norm < body.recomputed.size(); ++norm) {
    const backend::NormalizedTensor& own = body.recomputed[norm];
    pointers.input(fmt::format("scale[{}]", norm), own.scale);
    pointers.input(fmt::format("bias[{}]", norm), own.bias);
    pointers.input(fmt::format("variance[{}]", norm), own.variance);
  }
  pointers.output("result", 0);

  const int64_t slices = problem.slices();
  const int64_t blocks =
      std::min(problem.items(), std::max<int64_t>(gpu.multiprocessors / slices, 1));  // of a slice
  const int64_t weights = problem.weights ? problem.inputs * problem.outputs : 0;
  const int64_t sum_parts = floats(blocks * weights);
  pointers.workspace("weight_parts", 0);
  pointers.workspace("sum_parts", sum_parts);
  GeneratedProgram program;
  program.source = problem.print(
      problem.warpgroups ? "warpgroup_summed_gradients.cuh" : "summed_gradients.cuh",
      fmt::format("narrow = {}, wide = {}, slice = {}, weights = {:d}, norms = {}, recompute = {:d};\n"
                  "  static __device__ constexpr float epsilon(int norm) {{ return norm == 0 ? {} : {}; }}",
                  problem.outputs, problem.inputs, problem.slice, problem.weights, problem.norms, recompute,
                  float_literal(recompute ? body.recomputed[0].epsilon : 0),
                  float_literal(recompute ? body.recomputed[1].epsilon : 0)));
  add_run(program, pointers, fmt::format("SummedGradientsPointers<{}>", device_type(problem.type)),
          "summed_gradients", blocks * slices,
          problem.bytes_of(problem.stages * problem.item_elements() + problem.others()), kPointwiseThreads);
  std::vector<Combination> combinations;
  for (size_t sum = 0; sum <= problem.norms; ++sum)
    combinations.push_back({.offset = sum_parts + floats(static_cast<int64_t>(sum) * blocks * problem.inputs),
                            .results = problem.inputs,
                            .output = 1 + sum});
  program.workspace_bytes = combinations.back().offset + floats(blocks * problem.inputs);
  if (weights > 0) combinations.push_back({.offset = 0, .results = weights, .output = 2 + problem.norms});
  add_combine(program, node, combinations, blocks);
  return program;
}

GeneratedProgram normalized(const KernelRequest& request, const GpuTraits& gpu) {
  const Node& node = request.node;
  const backend::NormalizedGradientsBody body = backend::read_normalized_gradients(node);
  const NormalizedProblem problem(*body.data, request.tf32, gpu);
  PointerList pointers(node);
  const bool recompute = body.recomputed.has_value();
  pointers.input("dz", body.dy);
  pointers.input("x", body.y);
  pointers.input("input", recompute ? body.recomputed->x : *body.x);
  pointers.input("weight", body.weight);
  pointers.inputs("factors", {body.factor, body.correlation, body.offset});
  if (recompute) {
    pointers.input("scale", body.recomputed->scale);
    pointers.input("bias", body.recomputed->bias);
    pointers.input("mean", body.recomputed->mean);
    pointers.input("variance", body.recomputed->variance);
  }
  pointers.output("result", 0);
  pointers.workspace("parts", 0);

  const int64_t blocks = std::min<int64_t>(problem.items(), gpu.multiprocessors);
  const int64_t weights = problem.inputs * problem.outputs;
  GeneratedProgram program;
  program.source = problem.print(
      "normalized_gradients.cuh",
      fmt::format("narrow = {}, wide = {}, recompute = {:d};\n  static constexpr float epsilon = {}",
                  problem.inputs, problem.outputs, recompute,
                  float_literal(recompute ? body.recomputed->epsilon : 0)));
  add_run(program, pointers, fmt::format("NormalizedGradientsPointers<{}>", device_type(problem.type)),
          "normalized_gradients", blocks, problem.shared_bytes(), kPointwiseThreads);
  program.workspace_bytes = floats(blocks * weights);
  add_combine(program, node, {{.offset = 0, .results = weights, .output = 1}}, blocks);
  return program;
}

const GeneratedRegistration kSummed("fused:summed_gradients", summed);
const GeneratedRegistration kNormalized("fused:normalized_gradients", normalized);

}  // namespace

FusedGradients takes_summed_gradients(const Node& data_gradient, size_t normalizations, bool tf32,
                                      const GpuTraits& gpu) {
  const auto problem = worthwhile<SummedProblem>(&PointwiseProblem::inputs, data_gradient, normalizations,
                                                 Mask::read, tf32, gpu);
  if (!problem.has_value()) return FusedGradients::none;
  return problem->weights ? FusedGradients::both : FusedGradients::data;
}

// With several slices the kernel without warpgroups waits for shared memory already.
bool recomputes_mask(const Node& data_gradient, bool tf32, const GpuTraits& gpu) {
  const SummedProblem problem(data_gradient, 2, Mask::recomputed, tf32, gpu);
  return problem.warpgroups || problem.slices() == 1;
}

bool takes_normalized_gradients(const Node& data_gradient, bool tf32, const GpuTraits& gpu) {
  return worthwhile<NormalizedProblem>(&PointwiseProblem::outputs, data_gradient, tf32, gpu).has_value();
}

}  // namespace tessera::cuda
