// Batch normalization with the batch's own statistics, and what follows it in a fused node (the sum with a
// residual, relu): one pass over x for the statistics, one that writes y.
#include "tessera/device/common/batch_norm_patterns.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/normalization/batch_norm.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

class BatchNormTraining : public Kernel {
 public:
  BatchNormTraining(const Node& node, const backend::BatchNormBody& parts)
      : parts_(parts), rows_(node.input(parts_.x)->type()) {
    coefficients_ = workspace_.book<float>(3 * rows_.channels);
    sums_ = workspace_.book<double>(2 * rows_.blocks.count() * rows_.channels);
    summed_ = workspace_.book<float>(2 * rows_.blocks.parts * rows_.channels);
  }

  int64_t workspace_bytes() const override { return workspace_.bytes(); }

  // Statistics are complete before the first element of y is written, and each is written where it was read.
  bool may_overwrite(size_t output, size_t input) const override {
    return output == 0 && (input == parts_.x || input == parts_.residual);
  }

  void run(const KernelArguments& arguments) override {
    const int64_t channels = rows_.channels;
    const void* x = arguments.inputs[parts_.x];
    float* shift = coefficients_.in(arguments.workspace);
    float* mean = shift + channels;
    float* factor = mean + channels;
    double* sums = sums_.in(arguments.workspace);
    float* summed = summed_.in(arguments.workspace);

    copy_first_row(x, shift);
    const Blocks& blocks = rows_.blocks;
    for_each_block(blocks.parts, blocks.count(), Order::backwards, [&](int64_t thread, int64_t block) {
      run_pass(StatisticsPass{rows_.block(block), x, shift, summed + thread * 2 * channels,
                              sums + block * 2 * channels});
    });
    add_blocks(blocks.count(), channels, sums);
    finish_statistics(arguments, shift, sums, mean, factor);
    const ChannelAffine affine{mean, factor, static_cast<const float*>(arguments.inputs[parts_.bias])};

    const void* residual = parts_.residual.has_value() ? arguments.inputs[*parts_.residual] : nullptr;
    void* y = arguments.outputs[0];
    for_each_block(blocks.parts, blocks.count(), Order::forwards, [&](int64_t, int64_t block) {
      run_pass(NormalizePass{rows_.block(block), x, residual, y, affine, parts_.relu,
                             rows_.stream() && y != x && y != residual});
    });
  }

 private:
  // The first row stands for the mean until the mean is known.
  void copy_first_row(const void* x, float* shift) const {
    dispatch(rows_.type, [&]<typename T>() {
      const T* first = static_cast<const T*>(x);
      for (int64_t c = 0; c < rows_.channels; ++c) shift[c] = static_cast<float>(first[c]);
    });
  }

  void finish_statistics(const KernelArguments& arguments, const float* shift, const double* sums,
                         float* mean, float* factor) const {
    const auto count = static_cast<double>(rows_.rows());
    const auto* scale = static_cast<const float*>(arguments.inputs[parts_.scale]);
    const auto target = [&](std::optional<size_t> output) {
      return output.has_value() ? static_cast<float*>(arguments.outputs[*output]) : nullptr;
    };
    float* means = target(parts_.mean);
    float* variances = target(parts_.variance);
    for (int64_t c = 0; c < rows_.channels; ++c) {
      const double difference = sums[c] / count;
      const double square = sums[rows_.channels + c] / count - difference * difference;
      const auto variance = static_cast<float>(square < 0 ? 0 : square);
      mean[c] = static_cast<float>(static_cast<double>(shift[c]) + difference);
      factor[c] = normalizing_factor(scale[c], variance, parts_.epsilon);
      if (means != nullptr) means[c] = mean[c];
      if (variances != nullptr) variances[c] = variance;
    }
  }

  backend::BatchNormBody parts_;
  ActivationRows rows_;
  WorkspaceLayout workspace_;
  WorkspaceArray<float> coefficients_;
  WorkspaceArray<double> sums_;
  WorkspaceArray<float> summed_;
};

std::vector<KernelCandidate> candidates(const Node&) {
  return {checked_candidate("loops.batch_norm", [](const KernelRequest& request) -> KernelMaker {
    return [&node = request.node, parts = backend::read_batch_norm(request.node)] {
      return std::make_unique<BatchNormTraining>(node, parts);
    };
  })};
}

const CpuKernelRegistration kPlain({"batch_norm_training", candidates});
const CpuKernelRegistration kFused({"fused:batch_norm", candidates});

}  // namespace
}  // namespace tessera::cpu
