// The faults of cuDNN and cuBLASLt for which kernels refuse problems, in the libraries alone. A test that
// fails says that the installed version has the fault no more; what to do stands with it. They were seen on
// H100 and H200: of other cards nothing is said.
#include <cmath>
#include <limits>

#include "tessera/device/common/refusal.h"
#include "tessera/ops/functions.h"

#include "device/cuda/matmul/lt_product.h"
#include "device_cuda/cudnn_case.h"
#include "support/tf32.h"

namespace tessera::testing {
namespace {

using cuda::ConvolutionKind;
using cuda::ConvolutionProblem;

// The faults were seen on these cards; on others the libraries take other kernels.
#define TESSERA_NEEDS_HOPPER() \
  TESSERA_NEEDS_GPU();         \
  if (gpu_context().traits().architecture != 90) GTEST_SKIP() << "another card"

// Row by row like the graph's own axes; numbers of TF32, whose products are exact.
Tensor operand(DataType type, const Shape& shape, uint64_t seed) {
  return rounded_to_tf32(random_tensor(type, shape, -1, 1, seed));
}

// What the reference makes of the same gradient.
Tensor reference_of(const ConvolutionProblem& problem, const Tensor& first, const Tensor& second) {
  Graph graph;
  Value* a = graph.add_input(InputRole::input, "a", {problem.type, to_symbolic(first.shape())});
  Value* b = graph.add_input(InputRole::input, "b", {problem.type, to_symbolic(second.shape())});
  const ops::ConvolutionOptions options{.strides = problem.strides,
                                        .padding_low = problem.padding_low,
                                        .padding_high = problem.padding_high,
                                        .dilations = problem.dilations};
  const Value* result = problem.kind == ConvolutionKind::weight_gradient
                            ? ops::convolution_weight_gradient(a, b, to_symbolic(problem.weight), options)
                            : ops::convolution_data_gradient(a, b, to_symbolic(problem.x), options);
  return run_reference(*result->producer(), std::vector{&first, &second}).front();
}

// Whether cuDNN's first plan for the gradient, in fp32 or in TF32, is off by more than sums may be.
bool any_is_wrong(ConvolutionProblem problem, int64_t terms) {
  const OperandShapes shapes = operand_shapes(problem);
  const Tensor first = operand(problem.type, shapes.first, 1);
  const Tensor second = operand(problem.type, shapes.second, 2);
  const Tensor expected = reference_of(problem, first, second);
  const Tolerance tolerance = tolerance_for(OperatorClass::contraction, problem.type, {.terms = terms});
  bool wrong = false;
  for (const bool tf32 : {false, true}) {
    problem.tf32 = tf32;
    const auto plan = cuda::build_cudnn_plan(gpu_context(), problem.plan_problem(), 0);
    wrong |= !is_close(run_convolution(problem, *plan, first, second), expected, tolerance);
  }
  return wrong;
}

// The shapes at which random graphs and problems found it.
TEST(CudaLibraryFaults, GradientsOfCudnnAreOthersWherePaddingIsUneven) {
  TESSERA_NEEDS_HOPPER();
  const ConvolutionProblem weight{.kind = ConvolutionKind::weight_gradient,
                                  .x = {2, 17, 16, 5},
                                  .weight = {8, 4, 4, 5},
                                  .y = {2, 5, 5, 8},
                                  .strides = {3, 3},
                                  .padding_low = {0, 0},
                                  .padding_high = {1, 1},
                                  .dilations = {1, 1}};
  const ConvolutionProblem data{.kind = ConvolutionKind::data_gradient,
                                .x = {3, 5, 4, 1},
                                .weight = {16, 3, 3, 1},
                                .y = {3, 3, 4, 16},
                                .strides = {1, 1},
                                .padding_low = {0, 0},
                                .padding_high = {0, 2},
                                .dilations = {1, 1}};
  EXPECT_TRUE(any_is_wrong(weight, 2 * 5 * 5) || any_is_wrong(data, 3 * 3 * 16))
      << "cuDNN " << cuda::cudnn_version()
      << " computes both rightly. Run a thousand seeds of the fuzzers without the refusal of uneven padding "
         "in "
         "refuse_what_is_wrong() of src/device/cuda/cudnn/cudnn_convolution.cpp, and take it and this test "
         "away.";
}

// How many results of a relu after one NaN in each row of the first operand are numbers.
int64_t numbers(const Tensor& result) {
  int64_t count = 0;
  for (int64_t i = 0; i < result.size(); ++i) count += std::isnan(result.at(i)) ? 0 : 1;
  return count;
}

Tensor nan_of(const Shape& shape) {
  Tensor result(DataType::fp32, shape);
  for (int64_t i = 0; i < result.size(); ++i) result.set(i, std::numeric_limits<double>::quiet_NaN());
  return result;
}

ConvolutionProblem rectified(int64_t channels, int64_t window) {
  const int64_t padding = window / 2;
  return {.kind = ConvolutionKind::forward,
          .x = {2, 16, 16, channels},
          .weight = {64, window, window, channels},
          .y = {2, 16, 16, 64},
          .strides = {1, 1},
          .padding_low = {padding, padding},
          .padding_high = {padding, padding},
          .dilations = {1, 1},
          .bias = true,
          .activation = cuda::ConvolutionActivation::relu};
}

// Of what plan `choice` makes of NaN, in fp32 and in TF32; 0 where there is no such plan.
int64_t numbers_of_plan(ConvolutionProblem problem, int64_t choice) {
  int64_t count = 0;
  for (const bool tf32 : {false, true}) {
    problem.tf32 = tf32;
    const auto plan = backend::unless_refused(
        [&] { return cuda::build_cudnn_plan(gpu_context(), problem.plan_problem(), choice); });
    if (!plan.has_value()) continue;
    count += numbers(
        run_convolution(problem, **plan, nan_of(problem.x), operand(DataType::fp32, problem.weight, 2)));
  }
  return count;
}

TEST(CudaLibraryFaults, ReluOfCudnnMakesNumbersOfNaN) {
  TESSERA_NEEDS_HOPPER();
  EXPECT_GT(numbers_of_plan(rectified(64, 1), 0), 0)
      << "cuDNN " << cuda::cudnn_version()
      << " keeps NaN after windows of one element. Take the refusal of its ReLU out of "
         "refuse_what_is_wrong() in "
         "src/device/cuda/cudnn/cudnn_convolution.cpp, and this line away.";
}

TEST(CudaLibraryFaults, ReluOfCublasltMakesNumbersOfNaN) {
  TESSERA_NEEDS_HOPPER();
  constexpr int64_t kRows = 48, kColumns = 32, kDepth = 64;
  const DeviceMemory a(nan_of({kRows, kDepth}));
  const DeviceMemory b(operand(DataType::fp32, {kDepth, kColumns}, 2));
  const DeviceMemory bias(operand(DataType::fp32, {kColumns}, 3));
  const DeviceMemory y(operand(DataType::fp32, {kRows, kColumns}, 4));
  const std::shared_ptr<void> workspace = gpu_or_null()->allocate(cuda::kMostLtWorkspaceBytes);
  const std::shared_ptr<Queue> queue = gpu_or_null()->queue();
  int64_t lost = 0;
  for (int64_t choice = 1; choice < cuda::kLtAlgorithms; ++choice) {
    cuda::MatmulProblem problem{
        .type = DataType::fp32, .m = kRows, .n = kColumns, .k = kDepth, .activation = "relu", .tf32 = true};
    problem.bias = 2;
    const auto product = backend::unless_refused(
        [&] { return std::make_shared<cuda::LtProduct>(gpu_context(), problem, choice); });
    if (!product.has_value()) continue;
    const std::vector<const void*> inputs{a.get(), b.get(), bias.get()};
    const std::vector<void*> outputs{y.get()};
    (*product)->run({inputs, outputs, workspace.get(), *queue, {}});
    queue->synchronize();
    lost += numbers(y.read());
  }
  EXPECT_GT(lost, 0) << "cuBLASLt " << cuda::cublaslt().cublasLtGetVersion_()
                     << " keeps NaN whatever the algorithm. Take refuse_other_algorithms() out of "
                        "src/device/cuda/matmul/cublaslt_matmul.cpp, and this test away.";
}

}  // namespace
}  // namespace tessera::testing
