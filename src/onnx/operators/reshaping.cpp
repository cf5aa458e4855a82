// Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Expand, Tile, Concat, Split, DepthToSpace, SpaceToDepth.
#include <algorithm>
#include <numeric>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

void lower_reshape(LowerCall& call) {
  std::vector<int64_t> wanted = call.known_integers(1);
  const Shape before = call.type(0).static_shape();
  const bool keeps_zeros = call.integer("allowzero", 0) != 0;
  int64_t given = 1;
  std::ptrdiff_t open = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !keeps_zeros) {
      call.require(i < before.size(), "a 0 of the shape stands for an axis that the operand does not have");
      wanted[i] = before[i];
    }
    if (wanted[i] == -1) {
      call.require(open < 0, "two extents of the shape are open");
      open = static_cast<std::ptrdiff_t>(i);
    } else {
      call.require(wanted[i] >= 0, "a shape has no negative extents");
      given *= wanted[i];
    }
  }
  const int64_t count = element_count(before);
  if (open >= 0) {
    call.require(given != 0 && count % given == 0, "the open extent of the shape has no number");
    wanted[static_cast<size_t>(open)] = count / given;
  }
  call.result(0, reshape(call.operand(0), wanted));
}

void lower_flatten(LowerCall& call) {
  const Shape shape = call.type(0).static_shape();
  int64_t axis = call.integer("axis", 1);
  if (axis < 0) axis += std::ssize(shape);
  call.require(axis >= 0 && axis <= std::ssize(shape), "its axis is none of the operand's");
  const auto split = static_cast<size_t>(axis);
  call.result(0, reshape(call.operand(0), {product(shape, 0, split), product(shape, split, shape.size())}));
}

// Axes came to be an operand in opset 13.
std::vector<int64_t> given_axes(LowerCall& call) {
  if (call.version() < 13) return call.integers("axes");
  return call.has(1) ? call.known_integers(1) : std::vector<int64_t>{};
}

void lower_squeeze(LowerCall& call) {
  const Shape shape = call.type(0).static_shape();
  std::vector<int64_t> axes = axes_of(call, given_axes(call), std::ssize(shape));
  const bool all = call.version() < 13 ? !call.has_argument("axes") : !call.has(1);
  for (size_t i = 0; all && i < shape.size(); ++i) {
    if (shape[i] == 1) axes.push_back(static_cast<int64_t>(i));
  }
  for (const int64_t axis : axes)
    call.require(shape[static_cast<size_t>(axis)] == 1, "only axes of extent 1 can be squeezed");
  call.result(0, squeeze(call.operand(0), axes));
}

void lower_unsqueeze(LowerCall& call) {
  const std::vector<int64_t> axes = given_axes(call);
  const int64_t rank = call.type(0).rank() + std::ssize(axes);
  call.result(0, unsqueeze(call.operand(0), axes_of(call, axes, rank)));
}

void lower_transpose(LowerCall& call) {
  std::vector<int64_t> permutation = call.integers("perm");
  if (!call.has_argument("perm")) {
    permutation.resize(static_cast<size_t>(call.type(0).rank()));
    std::iota(permutation.rbegin(), permutation.rend(), 0);
  }
  call.result(0, transpose(call.operand(0), permutation));
}

void lower_expand(LowerCall& call) {
  call.result(
      0, broadcast(call.operand(0), broadcast_shapes(call.type(0).static_shape(), call.known_integers(1))));
}

void lower_tile(LowerCall& call) {
  const Shape shape = call.type(0).static_shape();
  const std::vector<int64_t> repeats = call.known_integers(1);
  call.require(repeats.size() == shape.size(), "there is to be a number of repeats for each axis");
  // [a, b] as [1, a, 1, b], repeated to [n, a, m, b].
  Shape apart;
  Shape repeated;
  Shape joined;
  for (size_t i = 0; i < shape.size(); ++i) {
    call.require(repeats[i] >= 0, "repeats are not negative");
    apart.insert(apart.end(), {1, shape[i]});
    repeated.insert(repeated.end(), {repeats[i], shape[i]});
    joined.push_back(repeats[i] * shape[i]);
  }
  call.result(0, reshape(broadcast(reshape(call.operand(0), apart), repeated), joined));
}

void lower_concat(LowerCall& call) {
  std::vector<Value*> parts;
  for (size_t i = 0; i < call.operand_count(); ++i) parts.push_back(call.operand(i));
  call.result(0, parts.size() == 1
                     ? parts[0]
                     : ops::concat(parts, axis_of(call, call.integer("axis", 1), parts[0]->type().rank())));
}

std::vector<int64_t> split_sizes(LowerCall& call, int64_t extent) {
  if (call.version() < 13 && call.has_argument("split")) return call.integers("split");
  if (call.version() >= 13 && call.has(1)) return call.known_integers(1);
  const auto parts = static_cast<int64_t>(call.result_count());
  const int64_t size = (extent + parts - 1) / parts;  // the last one may be smaller
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(extent - i * size, 0, size));
  return sizes;
}

void lower_split(LowerCall& call) {
  const Shape shape = call.type(0).static_shape();
  const int64_t axis = axis_of(call, call.integer("axis", 0), std::ssize(shape));
  const std::vector<int64_t> sizes = split_sizes(call, shape[static_cast<size_t>(axis)]);
  call.require(
      sizes.size() == call.result_count() &&
          std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == shape[static_cast<size_t>(axis)],
      "the parts do not make up the axis");
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    call.require(sizes[i] >= 0, "a part has no negative extent");
    if (call.wants(i)) call.result(i, slice_axis(call.operand(0), axis, start, start + sizes[i]));
    start += sizes[i];
  }
}

void lower_depth_to_space(LowerCall& call) {
  const Shape x = call.type(0).static_shape();
  const int64_t block = call.integer("blocksize");
  call.require(x.size() == 4 && block > 0 && x[1] % (block * block) == 0,
               "it takes [N, C, H, W] with C a multiple of the block's area");
  const int64_t channels = x[1] / (block * block);
  const bool columns_first = call.text("mode", "DCR") == "CRD";
  Value* y = columns_first ? transpose(reshape(call.operand(0), {x[0], channels, block, block, x[2], x[3]}),
                                       {0, 1, 4, 2, 5, 3})
                           : transpose(reshape(call.operand(0), {x[0], block, block, channels, x[2], x[3]}),
                                       {0, 3, 4, 1, 5, 2});
  call.result(0, reshape(y, {x[0], channels, x[2] * block, x[3] * block}));
}

void lower_space_to_depth(LowerCall& call) {
  const Shape x = call.type(0).static_shape();
  const int64_t block = call.integer("blocksize");
  call.require(x.size() == 4 && block > 0 && x[2] % block == 0 && x[3] % block == 0,
               "it takes [N, C, H, W] with H and W multiples of the block's side");
  Value* apart = reshape(call.operand(0), {x[0], x[1], x[2] / block, block, x[3] / block, block});
  const bool columns_first = call.text("mode", "DCR") == "CRD";
  Value* y = transpose(
      apart, columns_first ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4});
  call.result(0, reshape(y, {x[0], x[1] * block * block, x[2] / block, x[3] / block}));
}

const RuleRegistrations kRegistration{
    {.name = "Reshape", .lower = lower_reshape},
    {.name = "Flatten", .lower = lower_flatten},
    {.name = "Squeeze", .lower = lower_squeeze},
    {.name = "Unsqueeze", .lower = lower_unsqueeze},
    {.name = "Transpose", .lower = lower_transpose},
    {.name = "Expand", .lower = lower_expand},
    {.name = "Tile", .lower = lower_tile},
    {.name = "Concat", .lower = lower_concat},
    {.name = "Split", .lower = lower_split},
    {.name = "DepthToSpace", .lower = lower_depth_to_space},
    {.name = "SpaceToDepth", .lower = lower_space_to_depth},
};

}  // namespace
}  // namespace tessera::onnx
