// Every pass, in the order in which it runs.
#include "tessera/passes/pass.h"

#include "passes/passes.h"

namespace tessera {

std::vector<Pass> pipeline(const PassOptions& options) {
  const Pass dead{"remove_dead_code", "nodes that nothing reads", passes::remove_dead_code};
  const Pass constants{"fold_constants", "what depends on constants alone", passes::fold_constants};
  const Pass algebra{"simplify_algebra", "x + 0, x * 1, reshape of reshape, needless broadcasts",
                     passes::simplify_algebra};
  const Pass common{"common_subexpressions", "the same from the same inputs, once",
                    passes::common_subexpressions};
  // Casts would come between, and fusions have members that are not looked at.
  const Pass activations{.name = "recognize_activations",
                         .documentation = "silu, hard_swish and gelu that were written out",
                         .run = passes::recognize_activations,
                         .before = {"lower_precision", "fuse_patterns"}};
  const Pass attention{.name = "recognize_attention",
                       .documentation = "products around a softmax that were written out",
                       .run = passes::recognize_attention,
                       .before = {"settle_layout", "lower_precision", "fuse_patterns"}};
  // Where broadcasts were dropped.
  const Pass look_ups{.name = "recognize_look_ups",
                      .documentation = "products of rows that have a single one each",
                      .run = passes::recognize_look_ups,
                      .before = {"lower_precision", "fuse_patterns"}};
  const Pass layout{.name = "settle_layout",
                    .documentation = "transposes meet and go: channels-last throughout",
                    .run = passes::settle_layout,
                    .before = {"fuse_patterns"}};  // what is fused stays as it is
  // The factor goes into the weight in fp32, which is then rounded once.
  const Pass fold{.name = "fold_batch_norm",
                  .documentation = "frozen batch normalization into the convolution before it",
                  .run = passes::fold_batch_norm,
                  .before = {"lower_precision", "fuse_patterns"}};
  const Pass precision{.name = "lower_precision",
                       .documentation = "16-bit contractions and what lies between them",
                       .run = passes::lower_precision};
  // Operands of 16 bits are what is padded, and patterns have a product's epilogue.
  const Pass classes{.name = "pad_classes",
                     .documentation = "products of so many columns as are fast, whose losses read fewer",
                     .run = passes::pad_classes,
                     .after = {"lower_precision"},
                     .before = {"fuse_patterns", "fuse_elementwise"}};
  // Whose columns are as many as they will be.
  const Pass logits{.name = "split_logits",
                    .documentation = "losses of many rows and classes in parts, one after the other",
                    .run = passes::split_logits,
                    .after = {"pad_classes"},
                    .before = {"fuse_patterns", "fuse_elementwise"}};
  // A device whose attention reads parts of a value has it as a pattern, and patterns have a product's
  // epilogue.
  const Pass products{.name = "join_products",
                      .documentation = "queries, keys and values are one product of a value",
                      .run = passes::join_products,
                      .after = {"recognize_attention", "lower_precision"},
                      .before = {"fuse_patterns"}};
  // common_subexpressions would merge the copies with what they are copies of; of casts there are copies,
  // too.
  const Pass recompute{.name = "recompute_activations",
                       .documentation = "not kept for the backward half, but recomputed there",
                       .run = passes::recompute_activations,
                       .after = {"common_subexpressions", "lower_precision"}};
  // A device's kernels are of a precision, and patterns look for operators that expand_operators replaces.
  const Pass patterns{.name = "fuse_patterns",
                      .documentation = "what the device has one kernel for, by the patterns that it brings",
                      .run = passes::fuse_patterns,
                      .after = {"lower_precision", "recompute_activations"},
                      .before = {"expand_operators", "fuse_elementwise"}};
  // Only patterns make a normalization's result elsewhere, and take wide images.
  const Pass statistics{.name = "reduce_to_statistics",
                        .documentation = "training batch normalization whose result nobody reads",
                        .run = passes::reduce_to_statistics,
                        .after = {"fuse_patterns"},
                        .before = {"expand_operators"}};
  const Pass input_casts{.name = "fuse_input_casts",
                         .documentation = "images that are rounded where a convolution reads them",
                         .run = passes::fuse_input_casts,
                         .after = {"fuse_patterns"},
                         .before = {"fuse_elementwise"}};  // which takes the casts
  const Pass expand{.name = "expand_operators",
                    .documentation = "what the device has no kernel of its own for, in simpler operators",
                    .run = passes::expand_operators};
  const Pass clusters{.name = "fuse_elementwise",
                      .documentation = "elementwise work and a reduction after it into clusters",
                      .run = passes::fuse_elementwise,
                      .after = {"expand_operators"}};
  // Of what is left to choose: the tuner compares it with all apart.
  const Pass product_clusters{.name = "cluster_products",
                              .documentation = "matrix products and the elementwise work around them",
                              .run = passes::cluster_products,
                              .after = {"fuse_elementwise"},
                              .before = {"group_clusters"}};
  const Pass groups{.name = "group_clusters",
                    .documentation = "clusters of all weights into one launch",
                    .run = passes::group_clusters,
                    .after = {"fuse_elementwise"}};
  const Pass buckets{.name = "bucket_reductions",
                     .documentation = "what ranks add up together, as it is made",
                     .run = passes::bucket_reductions,
                     .after = {"lower_precision"},
                     .before = {"fuse_elementwise", "group_clusters"}};
  // What groups find before a collective is what it waits for, and nothing between.
  const Pass joins{.name = "join_reductions",
                   .documentation = "what ranks add up together, in one piece of memory",
                   .run = passes::join_reductions,
                   .after = {"bucket_reductions", "fuse_elementwise", "group_clusters"}};
  std::vector<Pass> passes{
      dead,        constants, algebra,  constants, common,  // what the model's code and the gradients left
      activations, attention, look_ups, dead,               // and what exporters wrote out
      layout,      constants,                  // channels-first code, its constants in the new order
      fold,        precision, dead,            // and the wide ones that nothing reads now
      algebra,     constants, common,   dead,  // casts that met, and those of constants
      classes,     logits,    buckets,
  };
  // Only with fusions, which make each copy of an activation one pass over memory. A normalization of which
  // only one statistic is read leaves dead code.
  if (options.fuse)
    passes.insert(passes.end(), {recompute, products, dead, patterns, statistics, dead, input_casts, expand,
                                 dead, clusters, product_clusters, groups});
  passes.push_back(joins);
  check_order(passes);
  return passes;
}

}  // namespace tessera
