// Kernels of max and average pooling and their gradients.
#include <algorithm>

#include "tessera/base/error.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/parallel.h"
#include "device/cpu/pooling_loops.h"

namespace tessera::cpu {
namespace {

// x and y: the activations before and behind the pooling.
PoolGeometry make_geometry(const Node& node, const TensorType& x, const TensorType& y) {
  PoolGeometry geometry;
  geometry.type = x.data_type;
  require(x.data_type == DataType::fp32 || x.data_type == DataType::fp16 || x.data_type == DataType::bf16,
          ErrorCode::unsupported, "no loop for {}", to_string(x.data_type));
  const Shape input = x.static_shape();
  const Shape output = y.static_shape();
  const size_t axes = input.size() - 2;
  require(axes <= 3, ErrorCode::unsupported, "{} spatial axes", axes);
  require(element_count(input) > 0, ErrorCode::unsupported, "a tensor without elements");
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

PoolGeometry forward_geometry(const Node& node) {
  return make_geometry(node, node.input(0)->type(), node.output()->type());
}

PoolGeometry gradient_geometry(const Node& node) {
  return make_geometry(node, node.output()->type(), node.input(0)->type());
}

using Loop = void (*)(const PoolGeometry& geometry, const KernelArguments& arguments, int64_t begin,
                      int64_t end);

class Pooling : public Kernel {
 public:
  Pooling(const PoolGeometry& geometry, int64_t rows, Loop loop)
      : geometry_(geometry), rows_(rows), loop_(loop) {
    parts_ = std::min(part_count(geometry.input_rows() * geometry.input[2] * geometry.channels), rows);
  }

  void run(const KernelArguments& arguments) override {
    for_each_part(parts_, rows_,
                  [&](int64_t, int64_t begin, int64_t end) { loop_(geometry_, arguments, begin, end); });
  }

 private:
  PoolGeometry geometry_;
  int64_t rows_;
  int64_t parts_;
  Loop loop_;
};

CpuKernels kernels(const std::string& name, bool forward, Loop loop) {
  const auto geometry_of = forward ? forward_geometry : gradient_geometry;
  const auto check = [geometry_of](const KernelRequest& request) { geometry_of(request.node); };
  const auto create = [geometry_of, forward, loop](const KernelRequest& request) -> std::unique_ptr<Kernel> {
    const PoolGeometry geometry = geometry_of(request.node);
    return std::make_unique<Pooling>(geometry, forward ? geometry.output_rows() : geometry.input_rows(),
                                     loop);
  };
  const KernelCandidate candidate = checked_candidate("loops." + name, check, create);
  return {.key = name, .candidates = [candidate](const Node&) { return std::vector{candidate}; }};
}

const CpuKernelRegistration kMaxForward(kernels(
    "max_pool", true, [](const PoolGeometry& g, const KernelArguments& a, int64_t begin, int64_t end) {
      max_pool(g, a.inputs[0], a.outputs[0], static_cast<uint8_t*>(a.outputs[1]), begin, end);
    }));
const CpuKernelRegistration kMaxGradient(kernels(
    "max_pool_gradient", false,
    [](const PoolGeometry& g, const KernelArguments& a, int64_t begin, int64_t end) {
      max_pool_gradient(g, a.inputs[0], static_cast<const uint8_t*>(a.inputs[1]), a.outputs[0], begin, end);
    }));
const CpuKernelRegistration kAverageForward(kernels("average_pool", true,
                                                    [](const PoolGeometry& g, const KernelArguments& a,
                                                       int64_t begin, int64_t end) {
                                                      average_pool(g, a.inputs[0], a.outputs[0], begin, end);
                                                    }));
const CpuKernelRegistration kAverageGradient(kernels("average_pool_gradient", false,
                                                     [](const PoolGeometry& g, const KernelArguments& a,
                                                        int64_t begin, int64_t end) {
                                                       average_pool_gradient(g, a.inputs[0], a.outputs[0],
                                                                             begin, end);
                                                     }));

}  // namespace
}  // namespace tessera::cpu
