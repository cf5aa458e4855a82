#include "tessera/passes/space_to_depth.h"

#include <algorithm>

#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

namespace tessera {
namespace {

// [N, rows, height, columns, width, C] to [N, rows, columns, height, width, C], and back.
const std::vector<int64_t> kSwap{0, 1, 3, 2, 4, 5};

// The node that makes the value for nobody but `reader`.
Node* sole_producer(const Node* reader, std::string_view operator_name) {
  Node* node = producer_of(reader->input(0), operator_name);
  return node != nullptr && sole_reader(node->output()) == reader ? node : nullptr;
}

bool pads_with_zeros(const Node& pad) {
  const std::vector<int64_t>& interior = pad.attributes().integers("interior");
  return pad.attributes().real("value") == 0 && pad.input(0)->shape().size() == 4 &&
         std::all_of(interior.begin(), interior.end(), [](int64_t count) { return count == 0; });
}

// `image` with each spatial axis in two: [N, rows, height, columns, width, C].
bool splits(const SymbolicShape& split, const SymbolicShape& image) {
  return split.size() == 6 && image.size() == 4 && is_static({split[2], split[4], split[5]}) &&
         split[0] == image[0] && split[1] * split[2] == image[1] && split[3] * split[4] == image[2] &&
         split[5] == image[3];
}

// `blocks`, [N, rows, columns, height * width * C], with the axis of the channels in three.
bool splits_channels(const SymbolicShape& split, const SymbolicShape& blocks) {
  return split.size() == 6 && blocks.size() == 4 && split[0] == blocks[0] && split[1] == blocks[1] &&
         split[2] == blocks[2];
}

// reshape, transpose, reshape, the last of which is given.
std::vector<Node*> match_swap(Node* last) {
  Node* transpose = sole_producer(last, "transpose");
  if (transpose == nullptr || transpose->attributes().integers("permutation") != kSwap) return {};
  Node* split = sole_producer(transpose, "reshape");
  return split == nullptr ? std::vector<Node*>() : std::vector{split, transpose, last};
}

bool starts_at_zero(const Node& slice) {
  const std::vector<int64_t>& starts = slice.attributes().integers("starts");
  const std::vector<int64_t>& strides = slice.attributes().integers("strides");
  return std::all_of(starts.begin(), starts.end(), [](int64_t start) { return start == 0; }) &&
         std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
}

}  // namespace

Value* space_to_depth(Value* x, const SpaceToDepth& work) {
  Value* padded = ops::pad(x, work.low, work.high);
  const SymbolicShape& shape = padded->shape();
  const auto [height, width] = work.block;
  const int64_t rows = shape[1].value() / height;
  const int64_t columns = shape[2].value() / width;
  Value* split = ops::reshape(padded, {shape[0], rows, height, columns, width, shape[3]});
  return ops::reshape(ops::transpose(split, kSwap), {shape[0], rows, columns, shape[3] * (height * width)});
}

Value* depth_to_space(Value* x, const std::array<int64_t, 2>& block, const Shape& shape) {
  const SymbolicShape& own = x->shape();
  const auto [height, width] = block;
  const int64_t channels = own[3].value() / (height * width);
  Value* split = ops::reshape(x, {own[0], own[1], own[2], height, width, channels});
  Value* whole =
      ops::reshape(ops::transpose(split, kSwap), {own[0], own[1] * height, own[2] * width, channels});
  return ops::slice(whole, {0, 0, 0, 0}, shape);
}

std::optional<SpaceToDepthMatch> match_space_to_depth(Node* last) {
  if (last->operator_name() != "reshape") return std::nullopt;
  SpaceToDepthMatch match{.work = {}, .nodes = match_swap(last)};
  if (match.nodes.empty()) return std::nullopt;
  const SymbolicShape& split = match.nodes[0]->output()->shape();
  const SymbolicShape& swapped = match.nodes[1]->output()->shape();
  Node* pad = sole_producer(match.nodes[0], "pad");
  if (pad == nullptr || !pads_with_zeros(*pad) || !splits(split, pad->output()->shape()) ||
      !splits_channels(swapped, last->output()->shape())) {
    return std::nullopt;
  }
  match.work = {.low = pad->attributes().integers("low"),
                .high = pad->attributes().integers("high"),
                .block = {split[2].value(), split[4].value()}};
  match.nodes.insert(match.nodes.begin(), pad);
  if (Node* cast = sole_producer(pad, "cast")) match.nodes.insert(match.nodes.begin(), cast);
  return match;
}

std::optional<DepthToSpaceMatch> match_depth_to_space(Node* last) {
  if (last->operator_name() != "slice" || !starts_at_zero(*last)) return std::nullopt;
  Node* joined = sole_producer(last, "reshape");
  if (joined == nullptr) return std::nullopt;
  DepthToSpaceMatch match{.block = {}, .nodes = match_swap(joined)};
  if (match.nodes.empty()) return std::nullopt;
  const SymbolicShape& split = match.nodes[0]->output()->shape();
  const SymbolicShape& swapped = match.nodes[1]->output()->shape();
  if (!splits_channels(split, match.nodes[0]->input(0)->shape()) ||
      !splits(swapped, joined->output()->shape())) {
    return std::nullopt;
  }
  match.block = {swapped[2].value(), swapped[4].value()};
  match.nodes.push_back(last);
  return match;
}

}  // namespace tessera
