// Pooling, and plain convolutions for what cuDNN does not take.
#include "device/cuda/convolution/window_kernels.h"

#include <algorithm>

#include <fmt/format.h>

#include "tessera/device/common/pool_geometry.h"
#include "tessera/graph/operator.h"

#include "kernels/block_sizes.h"

namespace tessera::cuda {
namespace {

using Triple = int64_t[3];

constexpr int kThreads = 256;
constexpr Triple kNoDilation = {1, 1, 1};

std::string list(const Triple& values) {
  return fmt::format("{{{}, {}, {}}}", values[0], values[1], values[2]);
}

// Whether an int32 holds the place of every element of the operands, and those of windows beside the image.
bool has_narrow_indices(const Node& node, const backend::PoolGeometry& geometry, const Triple& dilations) {
  constexpr auto kMost = static_cast<double>(1 << 30);
  const auto fits = [&](const Value& value) {
    return static_cast<double>(value.type().element_count()) < kMost;
  };
  bool narrow =
      std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Value* x) { return fits(*x); }) &&
      std::all_of(node.outputs().begin(), node.outputs().end(), [&](const auto& y) { return fits(*y); });
  for (int axis = 0; axis < 3; ++axis) {
    const auto reach = [](int64_t count, int64_t step) {
      return static_cast<double>(count) * static_cast<double>(step);
    };
    narrow = narrow && reach(geometry.input[axis], 1) + reach(geometry.padding[axis], 1) +
                               reach(geometry.output[axis], geometry.strides[axis]) +
                               reach(geometry.window[axis], dilations[axis]) <
                           kMost;
  }
  return narrow;
}

// The problem P of kernels/windows.cuh, as a constant `p`.
std::string problem(const Node& node, const backend::PoolGeometry& geometry, const Triple& dilations,
                    const std::string& more) {
  return fmt::format(
      "  struct Problem {{\n    using index = {};\n    index images = {}, channels = {};\n"
      "    index input[3] = {}, output[3] = {}, window[3] = {}, strides[3] = {}, padding[3] = {};\n"
      "    bool count_padding = {};\n{}  }};\n  constexpr Problem p;\n",
      has_narrow_indices(node, geometry, dilations) ? "int32" : "int64", geometry.images, geometry.channels,
      list(geometry.input), list(geometry.output), list(geometry.window), list(geometry.strides),
      list(geometry.padding), geometry.count_padding, more);
}

// Neighboring channels of one thread: as many as an access of 16 bytes takes, where they divide the
// channels.
int64_t channels_of_a_thread(const backend::PoolGeometry& geometry) {
  int64_t count = std::min<int64_t>(16 / static_cast<int64_t>(size_of(geometry.type)), 8);
  while (geometry.channels % count != 0) count /= 2;
  return count;
}

GeneratedProgram pooling(const Node& node, const GpuTraits& gpu, const std::string& arguments) {
  const backend::PoolGeometry geometry = backend::pool_geometry(node);
  const int64_t vector = channels_of_a_thread(geometry);
  const int64_t elements = node.output()->type().element_count();
  return simple_program(node, "pooling.cuh",
                        fmt::format("{}  {}<{}>(p, {});", problem(node, geometry, kNoDilation, ""),
                                    node.operator_name(), vector, arguments),
                        blocks_for(elements / vector, kThreads, gpu), kThreads);
}

const GeneratedRegistration kMaxPool("max_pool", [](const Node& node, const GpuTraits& gpu) {
  return pooling(node, gpu, "x0, y0, y1");
});
const GeneratedRegistration kMaxPoolGradient("max_pool_gradient", [](const Node& node, const GpuTraits& gpu) {
  return pooling(node, gpu, "x0, x1, y0");
});
const GeneratedRegistration kAveragePool("average_pool", [](const Node& node, const GpuTraits& gpu) {
  return pooling(node, gpu, "x0, y0");
});
const GeneratedRegistration kAveragePoolGradient("average_pool_gradient",
                                                 [](const Node& node, const GpuTraits& gpu) {
                                                   return pooling(node, gpu, "x0, y0");
                                                 });

}  // namespace

GeneratedProgram plain_convolution(const Node& node, const GpuTraits& gpu) {
  const std::string& name = node.operator_name();
  const bool data = name == "convolution_data_gradient" || name == "transposed_convolution";
  const bool weights = name == "convolution_weight_gradient";
  const Value* x = data ? node.output() : node.input(0);
  const Value* weight = weights ? node.output() : node.input(1);
  const Value* y = data ? node.input(0) : weights ? node.input(1) : node.output();
  const Shape input = x->type().static_shape();
  const Shape window = weight->type().static_shape();
  const Shape output = y->type().static_shape();
  const size_t axes = input.size() - 2;
  backend::PoolGeometry geometry;
  geometry.images = input.front();
  geometry.channels = input.back();
  Triple dilations = {1, 1, 1};
  for (size_t axis = 0; axis < axes; ++axis) {
    const size_t target = 3 - axes + axis;
    geometry.input[target] = input[axis + 1];
    geometry.output[target] = output[axis + 1];
    geometry.window[target] = window[axis + 1];
    geometry.strides[target] = node.attributes().integers("strides")[axis];
    geometry.padding[target] = node.attributes().integers("padding_low")[axis];
    dilations[target] = node.attributes().integers("dilations")[axis];
  }
  const std::string more = fmt::format("    index dilations[3] = {}, groups = {}, outputs = {};\n",
                                       list(dilations), node.attributes().integer("groups"), output.back());
  const int64_t elements = node.output()->type().element_count();
  if (weights) {
    return simple_program(
        node, "convolution.cuh",
        problem(node, geometry, dilations, more) + "  convolution_weight_gradient(p, x0, x1, y0);",
        std::min<int64_t>(elements, 1 << 20), kWeightGradientThreads);
  }
  const std::string type = device_type(node.output()->data_type());
  const std::string bias =
      node.inputs().size() > 2 ? "x2" : fmt::format("static_cast<const {}*>(nullptr)", type);
  const std::string call = data ? "convolution_data_gradient(p, x0, x1, y0);"
                                : fmt::format("convolution<{}>(p, x0, x1, {}, y0);", type, bias);
  return simple_program(node, "convolution.cuh", problem(node, geometry, dilations, more) + "  " + call,
                        blocks_for(elements, kThreads, gpu), kThreads);
}

}  // namespace tessera::cuda
