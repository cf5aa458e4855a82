// The passes by name, for pipeline.cpp.
#pragma once

#include <optional>

#include "tessera/passes/pass.h"

namespace tessera::passes {

bool remove_dead_code(Graph& graph, const PassContext& context);
bool fold_constants(Graph& graph, const PassContext& context);
bool simplify_algebra(Graph& graph, const PassContext& context);
bool common_subexpressions(Graph& graph, const PassContext& context);
// Products that are silu, hard_swish or gelu.
bool recognize_activations(Graph& graph, const PassContext& context);
bool recognize_attention(Graph& graph, const PassContext& context);
// Products of rows that have a single one each.
bool recognize_look_ups(Graph& graph, const PassContext& context);
// Runs operators that know no layout in the order of axes that takes the fewest transposes.
bool settle_layout(Graph& graph, const PassContext& context);
bool lower_precision(Graph& graph, const PassContext& context);
// Products whose columns only losses read give as many as the device likes, and the losses say how many
// count.
bool pad_classes(Graph& graph, const PassContext& context);
// Products of many rows that end in losses go from their logits to their gradients in parts of rows.
bool split_logits(Graph& graph, const PassContext& context);
// Products of one value whose results one node of attention reads, by weights that never change, where the
// device's attention reads parts of a value.
bool join_products(Graph& graph, const PassContext& context);
// Composite elementwise operators, and what the device says that it expands (PassTarget::expansion).
bool expand_operators(Graph& graph, const PassContext& context);
// Makes clusters of primitive elementwise operators and at most one reduction (DESIGN, decisions 2 and 5).
bool fuse_elementwise(Graph& graph, const PassContext& context);

// A product and elementwise work before and after it as one node, where the device may have one kernel for
// it: kind "product_cluster".
bool cluster_products(Graph& graph, const PassContext& context);

// What several ranks add up together, in buckets of PassOptions::bucket_bytes in the order in which they are
// made.
bool bucket_reductions(Graph& graph, const PassContext& context);
// What they add up together, as parts of one value.
bool join_reductions(Graph& graph, const PassContext& context);

// Clusters at the start and at the end of the step that do not depend on each other: kind "clusters", whose
// body holds nothing but clusters.
bool group_clusters(Graph& graph, const PassContext& context);

// Moves batch normalization of which nothing changes after binding into the weight and bias of the
// convolution before it.
bool fold_batch_norm(Graph& graph, const PassContext& context);

// Training keeps no result of a relu after batch normalization for a weight's gradient, which gets a copy
// recomputed from what is kept anyway.
bool recompute_activations(Graph& graph, const PassContext& context);

// The patterns of the device, in its order: one fused node, of the pattern's kind, for each place where one
// is found that its kernel takes.
bool fuse_patterns(Graph& graph, const PassContext& context);

// Training batch normalization of which only the statistics are read.
bool reduce_to_statistics(Graph& graph, const PassContext& context);

// Inputs of the graph in fp32 that convolutions in 16 bits read go to those as they are; the body rounds
// them: kinds as before, and "convolution_weight_gradient".
bool fuse_input_casts(Graph& graph, const PassContext& context);

}  // namespace tessera::passes
