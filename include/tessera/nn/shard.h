// How ranks share out a tensor: in parts of one size, each rank has one of them.
#pragma once

#include <cstdint>

#include "tessera/base/tensor.h"

namespace tessera::nn {

// One rank's part of a tensor: its elements, in their order, are cut into as many parts as there are ranks,
// each of size() elements. Zeros follow the last element where the parts hold more than the tensor.
struct Shard {
  Shape whole;
  int64_t rank = 0;
  int64_t ranks = 1;

  int64_t size() const;
  // What of the whole lies in the part: its first element, and how many there are.
  int64_t first() const;
  int64_t count() const;
};

// The part of a tensor of the shape `whole`, [size()].
Tensor part_of(const Shard& shard, const Tensor& whole);
// The tensor again, from the parts of all ranks, one after the other: [ranks * size()].
Tensor whole_of(const Shard& shard, const Tensor& parts);

}  // namespace tessera::nn
