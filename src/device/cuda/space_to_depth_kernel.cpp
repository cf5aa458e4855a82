// An image cast, padded and cut into blocks of pixels in one pass, and the way back.
#include <algorithm>

#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"
#include "tessera/passes/space_to_depth.h"

#include "device/cuda/generated_kernel.h"

namespace tessera::cuda {
namespace {

using backend::refuse_unless;

constexpr int kThreads = 256;
constexpr int64_t kAccessBytes = 16;

// What `matcher` finds in a body that holds nothing else.
template <typename Matcher>
auto match_body(const Node& node, Matcher matcher) {
  const Graph& body = *node.body();
  refuse_unless(node.inputs().size() == 1 && body.outputs().size() == 1, "it moves several values");
  Node* last = body.outputs()[0].value->producer();
  const auto match = last == nullptr ? std::nullopt : matcher(last);
  refuse_unless(match.has_value() && match->nodes.size() == body.nodes().size(),
                "the body is no such rearrangement");
  return *match;
}

// The problem P of kernels/space_to_depth.cuh, as a constant `p`.
std::string problem(const Shape& image, const Shape& blocks, const SpaceToDepth& work) {
  const int64_t most = std::max(element_count(image), element_count(blocks));
  const auto [height, width] = work.block;
  return fmt::format(
      "  struct Problem {{\n    using index = {};\n"
      "    index images = {}, height = {}, width = {}, channels = {}, rows = {}, columns = {};\n"
      "    index block_height = {}, block_width = {}, pixel_channels = {};\n"
      "    index low_row = {}, low_column = {};\n  }};\n  constexpr Problem p;\n",
      // The loop runs a grid's width beyond the last element.
      most < (int64_t{1} << 30) ? "int32" : "int64", image[0], image[1], image[2], image[3], blocks[1],
      blocks[2], height, width, blocks[3] / (height * width), work.low[1], work.low[2]);
}

GeneratedProgram space_to_depth_program(const Node& node, const GpuTraits& gpu) {
  const SpaceToDepth work = match_body(node, match_space_to_depth).work;
  refuse_unless(work.low[0] == 0 && work.high[0] == 0 && work.low[3] == 0, "it pads other axes");
  for (const Value* value : {node.input(0), node.output()}) {
    refuse_unless(is_floating(value->data_type()), "it moves {}", to_string(value->data_type()));
  }
  const Shape image = node.input(0)->type().static_shape();
  const Shape blocks = node.output()->type().static_shape();
  refuse_unless(element_count(blocks) > 0, "it moves nothing");
  const int64_t run = blocks[3] / work.block[0];
  int64_t vector = kAccessBytes / static_cast<int64_t>(size_of(node.output()->data_type()));
  while (run % vector != 0) vector /= 2;
  return simple_program(
      node, "space_to_depth.cuh",
      problem(image, blocks, work) + fmt::format("  space_to_depth<{}, {}>(p, x0, y0);", run, vector),
      blocks_for(element_count(blocks) / run, kThreads, gpu), kThreads);
}

GeneratedProgram depth_to_space_program(const Node& node, const GpuTraits& gpu) {
  const SpaceToDepth work{
      .low = {0, 0, 0, 0}, .high = {0, 0, 0, 0}, .block = match_body(node, match_depth_to_space).block};
  const Shape image = node.output()->type().static_shape();
  const Shape blocks = node.input(0)->type().static_shape();
  refuse_unless(element_count(image) > 0, "it moves nothing");
  return simple_program(node, "space_to_depth.cuh",
                        problem(image, blocks, work) + "  depth_to_space(p, x0, y0);",
                        blocks_for(element_count(image), kThreads, gpu), kThreads);
}

const GeneratedRegistration kSpaceToDepth("fused:space_to_depth", space_to_depth_program);
const GeneratedRegistration kDepthToSpace("fused:depth_to_space", depth_to_space_program);

}  // namespace
}  // namespace tessera::cuda
