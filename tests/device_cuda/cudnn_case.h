// Convolutions by cuDNN's plans alone, without the kernels that ask for them.
#pragma once

#include <algorithm>
#include <memory>

#include "device/cuda/cudnn/cudnn_convolution_graph.h"
#include "device_cuda/cuda_case.h"

namespace tessera::testing {

// Never closed, as plans and handles belong to it.
inline cuda::Context& gpu_context() {
  static auto& context = *new cuda::Context(0);
  return context;
}

// Memory of the GPU with a tensor in it.
class DeviceMemory {
 public:
  explicit DeviceMemory(const Tensor& tensor)
      : type_(tensor.data_type()),
        shape_(tensor.shape()),
        memory_(gpu_or_null()->allocate(static_cast<int64_t>(tensor.bytes()))) {
    gpu_or_null()->copy_from_host(memory_.get(), tensor.raw(), static_cast<int64_t>(tensor.bytes()));
  }
  void* get() const { return memory_.get(); }
  Tensor read() const {
    Tensor result(type_, shape_);
    gpu_or_null()->copy_to_host(result.raw(), memory_.get(), static_cast<int64_t>(result.bytes()));
    return result;
  }

 private:
  DataType type_;
  Shape shape_;
  std::shared_ptr<void> memory_;
};

struct OperandShapes {
  Shape first;
  Shape second;
  Shape result;
};

inline OperandShapes operand_shapes(const cuda::ConvolutionProblem& problem) {
  const bool weights = problem.kind == cuda::ConvolutionKind::weight_gradient;
  const bool data = problem.kind == cuda::ConvolutionKind::data_gradient;
  return {.first = data ? problem.y : problem.x,
          .second = weights ? problem.y : problem.weight,
          .result = weights ? problem.weight
                    : data  ? problem.x
                            : problem.y};
}

// What the plan makes of these operands, and of the same bias, residual and mask every time.
inline Tensor run_convolution(const cuda::ConvolutionProblem& problem, cuda::CudnnPlan& plan,
                              const Tensor& first_operand, const Tensor& second_operand) {
  const Shape shape = operand_shapes(problem).result;
  const auto memory = [](DataType type, const Shape& own, uint64_t seed) {
    return DeviceMemory(random_tensor(type, own, -1, 1, seed));
  };
  const DeviceMemory first(first_operand);
  const DeviceMemory second(second_operand);
  const DeviceMemory bias = memory(problem.type, {problem.y.back()}, 3);
  const DeviceMemory residual = memory(problem.type, shape, 4);
  const DeviceMemory mask = memory(problem.type, shape, 5);
  const DeviceMemory result = memory(problem.type, shape, 6);
  const DeviceMemory sums = memory(DataType::fp32, {problem.y.back()}, 7);
  const DeviceMemory squares = memory(DataType::fp32, {problem.y.back()}, 8);
  const std::shared_ptr<void> workspace =
      gpu_or_null()->allocate(std::max<int64_t>(plan.workspace_bytes(), 1));
  const cuda::ConvolutionOperands operands{.first = first.get(),
                                           .second = second.get(),
                                           .bias = problem.bias ? bias.get() : nullptr,
                                           .residual = problem.residual ? residual.get() : nullptr,
                                           .mask = problem.mask ? mask.get() : nullptr,
                                           .result = result.get(),
                                           .sums = problem.statistics ? sums.get() : nullptr,
                                           .squares = problem.statistics ? squares.get() : nullptr};
  const std::shared_ptr<Queue> queue = gpu_or_null()->queue();
  plan.run(operands.numbered(), workspace.get(), *queue);
  queue->synchronize();
  return result.read();
}

}  // namespace tessera::testing
