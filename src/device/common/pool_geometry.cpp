#include "tessera/device/common/pool_geometry.h"

#include "tessera/device/common/refusal.h"
#include "tessera/graph/operator.h"

namespace tessera::backend {
namespace {

// x and y: the activations before and after the pooling.
PoolGeometry make_geometry(const Node& node, const TensorType& x, const TensorType& y) {
  PoolGeometry geometry;
  geometry.type = x.data_type;
  const Shape input = x.static_shape();
  const Shape output = y.static_shape();
  const size_t axes = input.size() - 2;
  refuse_unless(axes <= 3, "{} spatial axes", axes);
  refuse_unless(element_count(input) > 0, "a tensor without elements");
  geometry.images = input.front();
  geometry.channels = input.back();
  for (size_t axis = 0; axis < axes; ++axis) {
    const size_t target = 3 - axes + axis;
    geometry.input[target] = input[axis + 1];
    geometry.output[target] = output[axis + 1];
    geometry.window[target] = node.attributes().integers("window")[axis];
    geometry.strides[target] = node.attributes().integers("strides")[axis];
    geometry.padding[target] = node.attributes().integers("padding_low")[axis];
  }
  if (node.attributes().contains("count_padding"))
    geometry.count_padding = node.attributes().boolean("count_padding");
  return geometry;
}

}  // namespace

PoolGeometry pool_geometry(const Node& node) {
  const bool gradient = node.attributes().contains("input_shape");
  return gradient ? make_geometry(node, node.output()->type(), node.input(0)->type())
                  : make_geometry(node, node.input(0)->type(), node.output()->type());
}

}  // namespace tessera::backend
