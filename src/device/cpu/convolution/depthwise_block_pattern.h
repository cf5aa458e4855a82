// A depthwise convolution with the pointwise one before it, after it, or both: the inverted residual blocks
// of MobileNet v2, the separable convolutions of MobileNet v1, what EfficientNet has before its squeeze and
// excitation. fp32, frozen weights.
#pragma once

#include <functional>

#include "tessera/passes/fusion_pattern.h"

#include "device/cpu/convolution/convolution_problem.h"

namespace tessera::cpu {

// Whether the product after a depthwise convolution, which another one is before or not, belongs to its
// block.
using JoinsProduct = std::function<bool(const ConvolutionProblem& depthwise, bool expands)>;
// Where the block has tiles for all threads (depthwise_tiling).
bool fills_threads(const ConvolutionProblem& depthwise, bool expands);

// Kind "depthwise_block". Each convolution has the roles of contraction_pattern() with its own prefix; only
// what nobody else reads is joined, and only the last may add a residual.
FusionPattern depthwise_block_pattern(const JoinsProduct& joins_product = fills_threads);

inline constexpr const char* kExpand = "expand_";
inline constexpr const char* kDepthwise = "depthwise_";
inline constexpr const char* kProject = "project_";

// What the links of a block may be: channels in whole vectors, two spatial axes.
void refuse_unless_pointwise(const ConvolutionProblem& problem);
void refuse_unless_depthwise(const ConvolutionProblem& problem);

}  // namespace tessera::cpu
