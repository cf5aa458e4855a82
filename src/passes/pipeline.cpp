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
  const Pass layout{"settle_layout", "transposes meet and go: channels-last throughout",
                    passes::settle_layout};
  const Pass precision{"lower_precision", "16-bit contractions and what lies between them",
                       passes::lower_precision};
  const Pass fold{"fold_batch_norm", "frozen batch normalization into the convolution before it",
                  passes::fold_batch_norm};
  const Pass recompute{"recompute_activations", "not kept for the backward half, but made again there",
                       passes::recompute_activations};
  const Pass patterns{"fuse_patterns", "what the device has one kernel for, by the patterns that it brings",
                      passes::fuse_patterns};
  const Pass statistics{"reduce_to_statistics", "training batch normalization whose result nobody reads",
                        passes::reduce_to_statistics};
  const Pass input_casts{"fuse_input_casts", "images that are rounded where a convolution reads them",
                         passes::fuse_input_casts};
  const Pass expand{"expand_operators", "what the device has no kernel of its own for, in simpler operators",
                    passes::expand_operators};
  const Pass clusters{"fuse_elementwise", "elementwise work and a reduction behind it into clusters",
                      passes::fuse_elementwise};
  const Pass groups{"group_clusters", "clusters of all weights into one launch", passes::group_clusters};
  const Pass buckets{"bucket_reductions", "what ranks add up together, as it is made",
                     passes::bucket_reductions};
  std::vector<Pass> passes{
      dead,    algebra,   constants, common,  // what the model's code and the gradients left
      layout,  constants,                     // channels-first code, and its constants in the new order
      fold,    precision, algebra,   constants, common, dead,  // casts that met, and those of constants
      buckets,
  };
  // Behind common_subexpressions, which would merge the copies with what they are copies of; and only with
  // fusions, which make each copy one pass over memory. A normalization of which
  // only one statistic is read leaves dead code.
  if (options.fuse)
    passes.insert(passes.end(),
                  {recompute, patterns, statistics, dead, input_casts, expand, dead, clusters, groups});
  return passes;
}

}  // namespace tessera
