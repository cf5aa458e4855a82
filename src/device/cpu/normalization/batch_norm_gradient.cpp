// The gradients of batch normalization, with what comes before them in a fused node: the sum of two
// gradients, and the mask of the relu after the normalization. One pass for the sums, one that writes dx.
#include <cmath>

#include "tessera/device/common/batch_norm_patterns.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/normalization/batch_norm.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

class BatchNormGradient : public Kernel {
 public:
  BatchNormGradient(const Node& node, const backend::BatchNormGradientBody& parts)
      : parts_(parts), rows_(node.input(parts_.x)->type()) {
    coefficients_ = workspace_.book<float>(4 * rows_.channels);
    sums_ = workspace_.book<double>(2 * rows_.blocks.count() * rows_.channels);
    summed_ = workspace_.book<float>(2 * rows_.blocks.parts * rows_.channels);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  // Both passes write elements where they have just read them; the first must leave x to the second.
  bool may_overwrite(size_t output, size_t input) const override {
    const bool gradient = input == parts_.dy || input == parts_.dy2 || input == parts_.y;
    return (output == parts_.dx && (gradient || input == parts_.x)) || (output == parts_.dz && gradient);
  }

  void run(const KernelArguments& arguments) override {
    const int64_t channels = rows_.channels;
    float* coefficients = coefficients_.in(arguments.workspace);
    double* sums = sums_.in(arguments.workspace);
    float* summed = summed_.in(arguments.workspace);
    const void* x = arguments.inputs[parts_.x];
    GradientSource source = make_source(arguments, coefficients + 3 * channels);
    void* dz = parts_.dz.has_value() ? arguments.outputs[*parts_.dz] : nullptr;

    const Blocks& blocks = rows_.blocks;
    for_each_block(blocks.parts, blocks.count(), Order::backwards, [&](int64_t thread, int64_t block) {
      run_pass(GradientSumsPass{rows_.block(block), source, x, dz, floats(arguments, parts_.mean),
                                summed + thread * 2 * channels, sums + block * 2 * channels});
    });
    add_blocks(blocks.count(), channels, sums);
    finish_sums(arguments, sums, coefficients);
    if (!parts_.dx.has_value()) return;

    if (dz != nullptr) source = {.dy = dz};
    void* dx = arguments.outputs[*parts_.dx];
    const bool stream = rows_.stream() && dx != x && dx != source.dy && dx != source.dy2 && dx != source.y;
    for_each_block(blocks.parts, blocks.count(), Order::forwards, [&](int64_t, int64_t block) {
      run_pass(InputGradientPass{rows_.block(block), source, x, dx, floats(arguments, parts_.mean),
                                 coefficients, coefficients + channels, coefficients + 2 * channels, stream});
    });
  }

 private:
  static const float* floats(const KernelArguments& arguments, size_t input) {
    return static_cast<const float*>(arguments.inputs[input]);
  }

  GradientSource make_source(const KernelArguments& arguments, float* factor) const {
    GradientSource source;
    source.dy = arguments.inputs[parts_.dy];
    if (parts_.dy2.has_value()) source.dy2 = arguments.inputs[*parts_.dy2];
    if (parts_.y.has_value()) source.y = arguments.inputs[*parts_.y];
    if (parts_.bias.has_value()) {
      for (int64_t c = 0; c < rows_.channels; ++c) {
        factor[c] = normalizing_factor(floats(arguments, parts_.scale)[c],
                                       floats(arguments, parts_.variance)[c], parts_.epsilon);
      }
      source.affine = {floats(arguments, parts_.mean), factor, floats(arguments, *parts_.bias)};
    }
    return source;
  }

  // With n = (x - mean) r: dx = scale r (dz - mean(dz) - n mean(dz n)), as a function of dz and x - mean.
  void finish_sums(const KernelArguments& arguments, const double* sums, float* coefficients) const {
    const auto count = static_cast<double>(rows_.rows());
    const auto target = [&](std::optional<size_t> output) {
      return output.has_value() ? static_cast<float*>(arguments.outputs[*output]) : nullptr;
    };
    float* dscale = target(parts_.dscale);
    float* dbias = target(parts_.dbias);
    const int64_t channels = rows_.channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double inverse =
          1 / std::sqrt(static_cast<double>(floats(arguments, parts_.variance)[c]) + parts_.epsilon);
      const double by_gradient = floats(arguments, parts_.scale)[c] * inverse;
      const double product = sums[channels + c] * inverse;  // sum(dz n)
      const double by_input = -by_gradient * inverse * product / count;
      coefficients[c] = static_cast<float>(by_gradient);
      coefficients[channels + c] = static_cast<float>(by_input);
      coefficients[2 * channels + c] = static_cast<float>(-by_gradient * sums[c] / count);
      if (dscale != nullptr) dscale[c] = static_cast<float>(product);
      if (dbias != nullptr) dbias[c] = static_cast<float>(sums[c]);
    }
  }

  backend::BatchNormGradientBody parts_;
  ActivationRows rows_;
  WorkspaceLayout workspace_;
  WorkspaceArray<float> coefficients_;
  WorkspaceArray<double> sums_;
  WorkspaceArray<float> summed_;
};

std::vector<KernelCandidate> candidates(const Node&) {
  return {checked_candidate("loops.batch_norm_gradient", [](const KernelRequest& request) -> KernelMaker {
    return [&node = request.node, parts = backend::read_batch_norm_gradient(request.node)] {
      return std::make_unique<BatchNormGradient>(node, parts);
    };
  })};
}

const CpuKernelRegistration kPlain({"batch_norm_gradient", candidates});
const CpuKernelRegistration kFused({"fused:batch_norm_gradient", candidates});

}  // namespace
}  // namespace tessera::cpu
