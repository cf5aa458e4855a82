// Space to depth: blocks of pixels become the channels of one pixel.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

// An image [N, H, W, C], padded with zeros, as [N, rows, columns, block height * block width * channels];
// weights [K, ...] just so.
struct SpaceToDepth {
  std::vector<int64_t> low;  // of the padding, per axis of the image; negative crops
  std::vector<int64_t> high;
  std::array<int64_t, 2> block = {1, 1};  // height and width
};

// Appends the nodes that rearrange x, whose spatial extents are numbers; the blocks divide the padded ones.
Value* space_to_depth(Value* x, const SpaceToDepth& work);
// Appends the nodes that take that back, and cut [N, rows * height, columns * width, channels] to `shape`.
Value* depth_to_space(Value* x, const std::array<int64_t, 2>& block, const Shape& shape);

// What these two appended, found by the last node, where nothing else reads what lies in between.
struct SpaceToDepthMatch {
  SpaceToDepth work;
  std::vector<Node*> nodes;  // a cast of x that nothing else reads among them
};
std::optional<SpaceToDepthMatch> match_space_to_depth(Node* last);

struct DepthToSpaceMatch {
  std::array<int64_t, 2> block;
  std::vector<Node*> nodes;
};
std::optional<DepthToSpaceMatch> match_depth_to_space(Node* last);

}  // namespace tessera
