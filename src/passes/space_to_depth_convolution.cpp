// A window of stride s over few channels becomes one of stride 1 over blocks of s x s pixels, whose channels
// are those of all its pixels: the same sums, but with channels enough to fill a matrix unit's operand. The
// window is padded with zeros to whole blocks.
#include <algorithm>
#include <array>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/space_to_depth.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

constexpr int64_t kMostChannels = 4;
constexpr int64_t kUnitChannels = 8;  // what matrix units take at once, or fill up with zeros

int64_t ceil_quotient(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

bool all_one(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t value) { return value == 1; });
}

bool is_static_image(const Value& value) {
  const SymbolicShape& shape = value.shape();
  return shape.size() == 4 && std::all_of(shape.begin() + 1, shape.end(),
                                          [](const Dimension& extent) { return extent.is_static(); });
}

// How the image and the weights of a convolution are rearranged.
struct Rearrangement {
  SpaceToDepth image;
  SpaceToDepth weight;
  SymbolicShape weight_shape;  // of the rearranged weights

  Rearrangement(const Node& node, const SymbolicShape& own, const SymbolicShape& x, const SymbolicShape& y) {
    const Attributes& attributes = node.attributes();
    image.block = {attributes.integers("strides")[0], attributes.integers("strides")[1]};
    weight.block = image.block;
    const int64_t pixels = image.block[0] * image.block[1];
    int64_t channels = own[3].value();
    while (pixels * channels % kUnitChannels != 0) ++channels;
    image.low = image.high = weight.low = weight.high = {0, 0, 0, 0};
    image.high[3] = weight.high[3] = channels - own[3].value();
    weight_shape = {own[0], 0, 0, pixels * channels};
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t stride = image.block[axis];
      const int64_t window = own[axis + 1].value();
      const int64_t blocks = ceil_quotient(window, stride);
      const int64_t padded = (y[axis + 1].value() - 1 + blocks) * stride;
      image.low[axis + 1] = attributes.integers("padding_low")[axis];
      image.high[axis + 1] = padded - x[axis + 1].value() - image.low[axis + 1];
      weight.high[axis + 1] = blocks * stride - window;
      weight_shape[axis + 1] = blocks;
    }
  }
};

bool is_weight_gradient(const Node& node) {
  return node.operator_name() == "convolution_weight_gradient";
}

Rearrangement rearrangement_of(const Node& node) {
  const Value* first = node.input(1);
  const Value* second = node.output();
  if (is_weight_gradient(node)) std::swap(first, second);
  return {node, first->shape(), node.input(0)->shape(), second->shape()};
}

// An image that needs a gradient is none that the network starts with. The gradient reads the same weights
// and the same gradient of the result.
bool differentiates_image(const Node& node) {
  const auto& uses = node.input(1)->uses();
  return std::any_of(uses.begin(), uses.end(),
                     [](const Use& use) { return use.node->operator_name() == "convolution_data_gradient"; });
}

// Fewer products than with the channels filled up as they are.
bool pays(const Rearrangement& work, const SymbolicShape& weight) {
  const int64_t before = weight[1].value() * weight[2].value() * kUnitChannels;
  const SymbolicShape& after = work.weight_shape;
  return after[1].value() * after[2].value() * after[3].value() < before;
}

bool applies(const Node& node) {
  if (node.operator_name() != "convolution" && !is_weight_gradient(node)) return false;
  const Value& x = *node.input(0);
  const Value& weight = is_weight_gradient(node) ? *node.output() : *node.input(1);
  if (size_of(x.data_type()) != 2 || !is_static_image(x) || !is_static_image(weight)) return false;
  if (x.shape()[3].value() > kMostChannels || node.attributes().integer("groups") != 1) return false;
  if (!all_one(node.attributes().integers("dilations")) || differentiates_image(node)) return false;
  return pays(rearrangement_of(node), weight.shape());
}

Value* rewritten(const Node& node) {
  const Rearrangement work = rearrangement_of(node);
  std::vector<Value*> inputs = node.inputs();
  inputs[0] = space_to_depth(inputs[0], work.image);
  Attributes attributes = node.attributes();
  attributes.set("strides", {1, 1});
  attributes.set("padding_low", {0, 0});
  attributes.set("padding_high", {0, 0});
  if (!is_weight_gradient(node)) {
    inputs[1] = space_to_depth(inputs[1], work.weight);
    return ops::apply("convolution", inputs, attributes, node.name())->output();
  }
  attributes.set("weight_shape", work.weight_shape);
  const Node* gradient = ops::apply(node.operator_name(), inputs, attributes, node.name());
  return depth_to_space(gradient->output(), work.weight.block, to_static(node.output()->shape()));
}

}  // namespace

bool space_to_depth_convolution(Graph& graph, const PassOptions& options) {
  if (!options.space_to_depth) return false;
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) {
    if (applies(*node)) nodes.push_back(node.get());
  }
  for (Node* node : nodes) {
    const InsertionPoint here(graph, node);
    graph.set_name_scope(node->name() + ".blocks");
    graph.replace_all_uses(node->output(), rewritten(*node));
    graph.erase(node);
  }
  graph.set_name_scope("");
  return !nodes.empty();
}

}  // namespace tessera::passes
