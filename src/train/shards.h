// Parameters in parts, of which each rank updates one (ZeRO stage 1; Rajbhandari et al., "ZeRO", 2020): how
// the graph of a step cuts and joins them.
//
// A part is of one parameter, so that norms are of whole parameters and states have their names. All ranks
// build the same nodes of the same types, whatever part is theirs: the order of their collectives hangs on
// that.
#pragma once

#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/nn/shard.h"

namespace tessera::train {

// A tensor of the shape shard.whole as its elements, and zeros after them: [ranks * shard.size()].
Value* all_parts(Value* whole, const nn::Shard& shard);
// This rank's part of them, [shard.size()].
Value* own_part(Value* whole, const nn::Shard& shard);
// The tensor again, from the parts of all ranks.
Value* joined_parts(Value* parts, const nn::Shard& shard);

// What the updates of parts ask of other ranks: sums of scalars.
class SumsOfParts {
 public:
  // Those of one parameter: each may wait for the ones before it, and for none of another parameter.
  void add(const std::vector<Node*>& sums);
  // The first of all parameters travel in one exchange, and so do the second ones.
  void join(Graph& graph) const;

 private:
  std::vector<std::vector<Node*>> by_place_;
};

}  // namespace tessera::train
