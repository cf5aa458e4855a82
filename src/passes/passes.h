// The passes by name, for pipeline.cpp.
#pragma once

#include "tessera/passes/pass.h"

namespace tessera::passes {

bool remove_dead_code(Graph& graph, const PassOptions& options);
bool fold_constants(Graph& graph, const PassOptions& options);
bool simplify_algebra(Graph& graph, const PassOptions& options);
bool common_subexpressions(Graph& graph, const PassOptions& options);
// Runs operators that know no layout in the order of axes that takes the fewest transposes.
bool settle_layout(Graph& graph, const PassOptions& options);
bool lower_precision(Graph& graph, const PassOptions& options);
// Makes clusters of elementwise operators and at most one reduction (DESIGN, decisions 2 and 5).
bool fuse_elementwise(Graph& graph, const PassOptions& options);

// Clusters at the start and at the end of the step that do not depend on each other: kind "clusters", whose
// body holds nothing but clusters.
bool group_clusters(Graph& graph, const PassOptions& options);

// Moves batch normalization of which nothing changes after binding into the weight and bias of the
// convolution before it.
bool fold_batch_norm(Graph& graph, const PassOptions& options);

// Training keeps no result of a relu behind batch normalization for a weight's gradient, which gets a copy
// computed again from what is kept anyway.
bool recompute_activations(Graph& graph, const PassOptions& options);

// Data gradients of convolutions with another gradient added and perhaps a relu's mask: kind
// "convolution_data_gradient".
bool fuse_data_gradient(Graph& graph, const PassOptions& options);

// Both gradients of pointwise convolutions with what stands behind and before them: kinds "summed_gradients"
// and "normalized_gradients".
bool fuse_pointwise_gradients(Graph& graph, const PassOptions& options);

// Training batch normalization by given statistics with relu and max pooling, and the gradients of the three:
// kinds "batch_norm_max_pool" and "max_pool_batch_norm_gradient".
bool fuse_pooled_batch_norm(Graph& graph, const PassOptions& options);

// Training batch normalization with residual and relu, its gradient with the relu's mask, and its recomputed
// result: kinds "batch_norm", "batch_norm_gradient" and "batch_norm_inference".
bool fuse_batch_norm(Graph& graph, const PassOptions& options);

// Convolutions and matrix products with bias, residual and activations: kinds "convolution" and "matmul".
bool fuse_convolution(Graph& graph, const PassOptions& options);
bool fuse_matmul(Graph& graph, const PassOptions& options);

// Inputs of the graph in fp32 that convolutions in 16 bits read go to those as they are; the body rounds
// them: kinds as before, and "convolution_weight_gradient".
bool fuse_input_casts(Graph& graph, const PassOptions& options);

}  // namespace tessera::passes
