// Kernels of max and average pooling and their gradients.
#include <algorithm>

#include "tessera/device/common/refusal.h"

#include "device/cpu/kernel_registry.h"
#include "device/cpu/pooling/pooling_loops.h"
#include "device/cpu/runtime/parallel.h"

namespace tessera::cpu {
namespace {

PoolGeometry geometry_of(const Node& node) {
  const PoolGeometry geometry = backend::pool_geometry(node);
  const DataType type = geometry.type;
  backend::refuse_unless(type == DataType::fp32 || type == DataType::fp16 || type == DataType::bf16,
                         "no loop for {}", to_string(type));
  return geometry;
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
  const auto plan = [forward, loop](const KernelRequest& request) -> KernelMaker {
    return [geometry = geometry_of(request.node), forward, loop] {
      const int64_t rows = forward ? geometry.output_rows() : geometry.input_rows();
      return std::make_unique<Pooling>(geometry, rows, loop);
    };
  };
  const KernelCandidate candidate = checked_candidate("loops." + name, plan);
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
