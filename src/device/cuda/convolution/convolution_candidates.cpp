// Who computes convolutions and their gradients, in order: kernels of our own take only what cuDNN is slow
// for, plain loops what nothing else takes.
#include <iterator>

#include "tessera/device/common/kernel_table.h"

#include "device/cuda/codegen/generated_kernel.h"
#include "device/cuda/convolution/depthwise_convolution.h"
#include "device/cuda/convolution/few_channels.h"
#include "device/cuda/convolution/pointwise_convolution.h"
#include "device/cuda/convolution/split_convolution.h"
#include "device/cuda/convolution/window_gradient.h"
#include "device/cuda/convolution/window_kernels.h"
#include "device/cuda/cudnn/cudnn_convolution.h"
#include "device/cuda/kernel_registry.h"

namespace tessera::cuda {
namespace {

using Candidates = std::vector<KernelCandidate>;

Candidates and_cudnn(Candidates candidates, Context& context) {
  Candidates others = cudnn_convolution_candidates(context);
  std::move(others.begin(), others.end(), std::back_inserter(candidates));
  return candidates;
}

Candidates and_plain_loops(Candidates candidates, Context& context) {
  const auto create = [&context](const KernelRequest& request) {
    return make_generated_kernel(context, plain_convolution(request.node, context.traits()));
  };
  candidates.push_back(backend::fallback_candidate("generated.convolution", create));
  return candidates;
}

Candidates forward(const Node&, Context& context) {
  return and_plain_loops(and_cudnn({few_channel_candidate(context), split_convolution_candidate(context),
                                    depthwise_convolution_candidate(context)},
                                   context),
                         context);
}
Candidates data_gradient(const Node&, Context& context) {
  return and_plain_loops(and_cudnn({}, context), context);
}
Candidates weight_gradient(const Node&, Context& context) {
  return and_plain_loops(
      and_cudnn({window_gradient_candidate(context), few_channel_candidate(context)}, context), context);
}

Candidates with_epilogue(const Node&, Context& context) {
  return and_cudnn({residual_convolution_candidate(context), few_channel_candidate(context),
                    split_convolution_candidate(context), depthwise_convolution_candidate(context)},
                   context);
}
Candidates with_statistics(const Node&, Context& context) {
  return and_cudnn({pointwise_statistics_candidate(context), few_channel_candidate(context)}, context);
}
Candidates masked_data_gradient(const Node&, Context& context) {
  return and_cudnn({}, context);
}
// Of an image that the body rounds.
Candidates rounded_weight_gradient(const Node&, Context& context) {
  return {few_channel_candidate(context)};
}

CudaKernels tuned(const std::string& key, Candidates (*candidates)(const Node& node, Context& context)) {
  return {.key = key, .candidates = candidates, .tunable = true};
}

const CudaKernelRegistration kForward(tuned("convolution", forward));
const CudaKernelRegistration kData(tuned("convolution_data_gradient", data_gradient));
const CudaKernelRegistration kWeights(tuned("convolution_weight_gradient", weight_gradient));
const CudaKernelRegistration kTransposed(tuned("transposed_convolution", data_gradient));
const CudaKernelRegistration kEpilogue(tuned("fused:convolution", with_epilogue));
const CudaKernelRegistration kMasked(tuned("fused:convolution_data_gradient", masked_data_gradient));
const CudaKernelRegistration kStatistics(tuned("fused:convolution_statistics", with_statistics));
const CudaKernelRegistration kRounded({"fused:convolution_weight_gradient", rounded_weight_gradient});

}  // namespace
}  // namespace tessera::cuda
