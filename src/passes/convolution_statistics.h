// The batch's statistics as part of the convolution whose result they are of.
#pragma once

#include "tessera/passes/pass.h"

namespace tessera::passes {

// Rewrites batch normalizations of large results of convolutions: the convolution adds up its result and the
// squares (kind "convolution_statistics"), and the normalization becomes elementwise work, which fuses with
// what follows it. Runs when the gradients have been fused: they look for batch_norm_training.
bool use_convolution_statistics(Graph& graph, const PassOptions& options);

}  // namespace tessera::passes
