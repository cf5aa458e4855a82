#include "device/cuda/fusion_patterns.h"

#include "tessera/device/common/attention_patterns.h"
#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/device/common/convolution_patterns.h"
#include "tessera/device/common/cross_entropy_pattern.h"
#include "tessera/device/common/residual_layer_norm.h"

#include "device/cuda/attention/block_attention.h"
#include "device/cuda/attention/cudnn_attention.h"
#include "device/cuda/convolution/epilogue_activation.h"
#include "device/cuda/convolution/few_channels.h"
#include "device/cuda/convolution/pointwise_convolution.h"
#include "device/cuda/convolution/pointwise_gradients.h"
#include "device/cuda/matmul/few_row_matmul.h"
#include "device/cuda/matmul/matmul_problem.h"

namespace tessera::cuda {
namespace {

// Smaller results stay in the cache or in the multiprocessors between the two passes over them.
bool is_worth_statistics_of_cudnn(const Node& convolution) {
  constexpr int64_t kLeastBytes = int64_t{96} << 20;
  const TensorType& y = convolution.output()->type();
  return is_half(y.data_type) && y.bytes() >= kLeastBytes;
}

// Whether products of fp32 may round their operands.
bool rounds_to_tf32(const PassOptions& options) {
  return options.precision == Precision::tf32 && tf32_allowed();
}

FusionPattern alternative(FusionPattern pattern) {
  pattern.alternative = true;
  return pattern;
}

}  // namespace

std::vector<FusionPattern> fusion_patterns(const PassOptions& options, const GpuTraits& gpu) {
  const bool tf32 = rounds_to_tf32(options);
  const auto makes = [=](FusedGradients wanted) {
    return [=](const Node& data_gradient, size_t normalizations) {
      return takes_summed_gradients(data_gradient, normalizations, tf32, gpu) == wanted;
    };
  };
  const auto mask = [=](const Node& data_gradient, size_t) {
    return recomputes_mask(data_gradient, tf32, gpu);
  };
  const auto normalized = [=](const Node& data_gradient, size_t) {
    return takes_normalized_gradients(data_gradient, tf32, gpu);
  };
  const auto input = [=](const Node& convolution, size_t normalizations, bool residual) {
    return takes_normalized_input(convolution, normalizations, residual, tf32, gpu);
  };
  // cuDNN's statistics are sums in no fixed order, although its notes do not say so, and of 16 bits alone.
  const auto statistics = [=, by_cudnn = !options.deterministic](const Node& convolution) {
    if (by_cudnn && is_worth_statistics_of_cudnn(convolution)) return true;
    return (tf32 || !by_cudnn) && (takes_few_channels(convolution, tf32) ||
                                   takes_pointwise_statistics(convolution, tf32, !by_cudnn, gpu));
  };
  const auto attention = [=](const Node& node) { return is_attention_of_cudnn(node, gpu); };
  const auto dropout_attention = [=](const Node& node) { return is_attention_by_blocks(node, gpu); };
  return {
      backend::summed_gradients_pattern(makes(FusedGradients::both), mask),
      alternative(backend::summed_data_gradient_pattern(makes(FusedGradients::data))),
      backend::normalized_gradients_pattern(normalized),
      backend::masked_data_gradient_pattern(),
      backend::pooled_batch_norm_gradient_pattern(),
      backend::pooled_batch_norm_pattern(),
      backend::batch_norm_gradient_pattern(),
      backend::recomputed_batch_norm_pattern(),
      backend::normalized_convolution_pattern(input),
      alternative(backend::convolution_statistics_pattern(statistics)),
      backend::batch_norm_pattern(),
      backend::attention_gradient_pattern(
          attention, [=](const Node& node) { return makes_bias_gradient_by_cudnn(node, gpu); }),
      backend::attention_pattern(attention),
      backend::dropout_attention_gradient_pattern(dropout_attention),
      backend::dropout_attention_pattern(dropout_attention),
      backend::residual_layer_norm_gradient_pattern(),
      backend::residual_layer_norm_pattern(),
      backend::cross_entropy_pattern(),
      backend::evaluated_cross_entropy_pattern(),
      backend::contraction_pattern("convolution", {.takes_activation = ends_convolutions, .ordered = true}),
      normalized_matmul_pattern(tf32),
      matmul_pattern()};
}

bool recomputes_activation(const Node& weight_gradient, const PassOptions& options, const GpuTraits& gpu) {
  const bool tf32 = rounds_to_tf32(options);
  return backend::recomputes_activation(
      weight_gradient,
      [&](const Node& data_gradient, size_t normalizations) {
        return takes_summed_gradients(data_gradient, normalizations, tf32, gpu) != FusedGradients::none;
      },
      [&](const Node& data_gradient, size_t) {
        return takes_normalized_gradients(data_gradient, tf32, gpu);
      });
}

}  // namespace tessera::cuda
