// Batch normalization, relu and max pooling in one step, and their gradients in one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "device_cuda/cuda_case.h"
#include "support/batch_norm_case.h"

namespace tessera::testing {
namespace {

struct PooledCase {
  std::string name;
  Shape x;
  DataType type = DataType::fp16;
  ops::PoolOptions window;
};

const ops::PoolOptions kThree{
    .window = {3, 3}, .strides = {2, 2}, .padding_low = {1, 1}, .padding_high = {1, 1}};

// Uneven padding, broken last tiles and pairs of windows, one lane and 32, one channel slice and several,
// pixels that no window sees and those under nine, one axis, and (the last) several places of each thread.
std::vector<PooledCase> cases() {
  const std::vector<PooledCase> shapes{
      {"Even", {2, 12, 12, 64}, {}, kThree},
      {"Odd",
       {3, 11, 7, 8},
       {},
       {.window = {3, 3}, .strides = {2, 2}, .padding_low = {1, 0}, .padding_high = {0, 1}}},
      {"Oblong",
       {2, 9, 10, 24},
       {},
       {.window = {3, 2}, .strides = {1, 2}, .padding_low = {2, 1}, .padding_high = {0, 0}}},
      {"Gaps",
       {1, 13, 5, 16},
       {},
       {.window = {2, 2}, .strides = {3, 3}, .padding_low = {0, 1}, .padding_high = {1, 0}}},
      {"Unstrided",
       {2, 6, 5, 40},
       {},
       {.window = {3, 3}, .strides = {1, 1}, .padding_low = {1, 1}, .padding_high = {1, 1}}},
      {"OneAxis", {5, 21, 16}, {}, {.window = {3}, .strides = {2}, .padding_low = {1}, .padding_high = {1}}},
      {"Wide",
       {2, 5, 5, 512},
       {},
       {.window = {2, 2}, .strides = {2, 2}, .padding_low = {0, 0}, .padding_high = {1, 1}}}};
  std::vector<PooledCase> result;
  for (const DataType type : {DataType::fp32, DataType::fp16, DataType::bf16}) {
    for (PooledCase own : shapes) {
      own.type = type;
      own.name += "_" + std::string(to_string(type));
      result.push_back(std::move(own));
    }
  }
  result.push_back({"Long", {24, 56, 57, 64}, DataType::fp16, kThree});
  return result;
}

struct PooledNode {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>("g");
  Value* x = nullptr;
  Value* channels[4];  // scale, bias, mean, variance
  Node* node = nullptr;

  explicit PooledNode(const PooledCase& own) {
    x = input("x", own.type, own.x);
    size_t i = 0;
    const DataType type = own.type == DataType::fp64 ? own.type : DataType::fp32;
    for (const char* name : {"scale", "bias", "mean", "variance"})
      channels[i++] = input(name, type, {own.x.back()});
  }

  Value* input(const std::string& name, DataType type, const Shape& shape) {
    return graph->add_input(InputRole::input, name, {type, {shape.begin(), shape.end()}});
  }
  Value* normalized() {
    return ops::batch_norm_inference(x, channels[0], channels[1], channels[2], channels[3], 0.25);
  }
  void fuse(const std::string& kind, std::initializer_list<Value*> members,
            const std::vector<Value*>& outputs, FusionMatch match) {
    for (size_t i = 0; i < outputs.size(); ++i) graph->add_output("y" + std::to_string(i), outputs[i]);
    std::vector<Node*> nodes;
    for (const Value* value : members) nodes.push_back(value->producer());
    node = fuse_nodes(*graph, kind, nodes, outputs, match.roles);
    verify(*graph);
  }
};

PooledNode forward_node(const PooledCase& own) {
  PooledNode result(own);
  Value* n = result.normalized();
  Value* r = ops::relu(n);
  Value* y = ops::max_pool(r, own.window);
  FusionMatch match;
  match.add_roles_of(*n->producer());
  match.add_role("relu", r);
  match.add_role("pooling", y);
  result.fuse("batch_norm_max_pool", {n, r, y}, {y, y->producer()->output(1)}, match);
  return result;
}

PooledNode backward_node(const PooledCase& own) {
  PooledNode result(own);
  const Shape pooled = forward_node(own).node->output(0)->type().static_shape();
  Value* dy = result.input("dy", own.type, pooled);
  Value* position = result.input("position", DataType::uint8, pooled);
  Value* g = ops::max_pool_gradient(dy, position, result.x->shape(), own.window);
  Value* n = result.normalized();
  Value* zero = ops::constant_like(n, 0);
  Value* open = ops::greater(n, zero);
  Value* dz = ops::select(open, g, zero);
  const ops::NormGradients dx = ops::batch_norm_gradient(dz, result.x, result.channels[0], result.channels[2],
                                                         result.channels[3], 0.25);
  FusionMatch match;
  match.add_roles_of(*dx.x->producer());
  match.add_role("masked", dz);
  match.add_role("mask_bias", result.channels[1]);
  match.add_role("pooling", g);
  match.add_role("dy", dy);
  match.add_role("positions", position);
  result.fuse("max_pool_batch_norm_gradient", {g, n, open, dz, dx.x}, {dx.x, dx.scale, dx.bias}, match);
  return result;
}

// Whole multiples of `step` between -most and most.
Tensor steps(const Value& value, double step, double most, uint64_t seed) {
  Tensor result = random_tensor(value.data_type(), value.type().static_shape(), -most, most, seed);
  for (int64_t i = 0; i < result.size(); ++i) result.set(i, std::round(result.at(i) / step) * step);
  return result;
}

// Numbers of which the normalized x is exact in every type and never zero: then positions and masks do not
// hang on roundings. Ties are frequent.
std::vector<Tensor> exact_inputs(const PooledCase& own, const Node& node) {
  std::vector<Tensor> inputs;
  for (const Value* input : node.inputs()) {
    const uint64_t seed = 7 + inputs.size();
    const std::string& name = input->name();
    if (name == "position") {
      const int64_t volume = element_count(own.window.window);
      inputs.push_back(random_tensor(DataType::uint8, input->type().static_shape(), 0,
                                     static_cast<double>(volume - 1), seed));
      continue;
    }
    Tensor tensor = steps(*input, name == "dy" ? 1.0 / 64 : 0.5,
                          name == "dy"  ? 0.5
                          : name == "x" ? 2
                                        : 1,
                          seed);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (name == "bias") tensor.set(i, tensor.at(i) + 1.0 / 16);
      if (name == "scale" && tensor.at(i) == 0) tensor.set(i, 1);
      if (name == "variance") tensor.set(i, tensor.at(i) > 0 ? 0.75 : 3.75);  // deviations of 1 and 2
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// What pooling sends back are whole 64ths within 4, which every type holds, and normalized numbers are within
// 3 and exact but for the rounding of one over the deviation. Errors of what is added up are independent.
Tolerance gradient_tolerance(const Value& output, const PooledCase& own) {
  const int64_t rows = element_count(own.x) / own.x.back();
  if (output.type().rank() > 1)
    return tolerance_for(OperatorClass::normalization, output.data_type(), {rows, 8});
  const double largest = output.name() == "dscale" ? 4 * 3 : 4;
  const double a = unit_roundoff(output.data_type());
  return {4 * std::sqrt(static_cast<double>(rows)) * a * largest, 16 * a};
}

class CudaPooledBatchNorm : public ::testing::TestWithParam<PooledCase> {};

TEST_P(CudaPooledBatchNorm, EveryKernel) {
  TESSERA_NEEDS_GPU();
  const PooledCase& own = GetParam();
  const PooledNode pooled = forward_node(own);
  std::vector<Tensor> inputs = exact_inputs(own, *pooled.node);
  // What is not a number is larger than infinity, the first of several is taken.
  for (int64_t i = 0; i < inputs[0].size(); i += 29)
    inputs[0].set(
        i, i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity());
  const Tolerance rounding = tolerance_for(OperatorClass::elementwise, DataType::fp32, {.magnitude = 4});
  const std::vector<std::string> names = expect_every_kernel(
      *pooled.node, inputs, {rounding, {}}, std::vector<bool>(inputs.size(), false), gpu_or_null());
  EXPECT_EQ(names.size(), 2U);  // generated and expanded
}

TEST_P(CudaPooledBatchNorm, EveryKernelOfTheGradient) {
  TESSERA_NEEDS_GPU();
  const PooledCase& own = GetParam();
  const PooledNode pooled = backward_node(own);
  const std::vector<Tensor> inputs = exact_inputs(own, *pooled.node);
  Tolerances tolerances;
  for (const char* name : {"dx", "dscale", "dbias"}) {
    pooled.graph->rename(pooled.node->output(tolerances.size()), name);
    tolerances.push_back(gradient_tolerance(*pooled.node->output(tolerances.size()), own));
  }
  const std::vector<std::string> names = expect_every_kernel(
      *pooled.node, inputs, tolerances, std::vector<bool>(inputs.size(), false), gpu_or_null());
  EXPECT_EQ(names.size(), 2U);
}

TEST_P(CudaPooledBatchNorm, Compiles) {
  for (const PooledNode& pooled : {forward_node(GetParam()), backward_node(GetParam())}) {
    EXPECT_GE(compile_candidates(*pooled.node), 2U) << print(*pooled.node);
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, CudaPooledBatchNorm, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

// Places that 32 bits do not count.
TEST(CudaPooledBatchNorms, CompileForTensorsOfBillions) {
  const PooledCase own{"Large", {2048, 112, 112, 64}, DataType::fp16, kThree};
  EXPECT_GT(compile_candidates(*forward_node(own).node), 0U);
  EXPECT_GT(compile_candidates(*backward_node(own).node), 0U);
}

// The reason for which the generated kernel of the node is refused; the body runs instead.
std::string refusal(const Node& node) {
  cuda::Context card("h100");
  const std::vector<KernelCandidate> candidates = cuda::cuda_candidates(node, card);
  EXPECT_EQ(candidates.size(), 2U);
  const KernelRequest request{.node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false)};
  EXPECT_EQ(candidates.back().name, "expanded");
  EXPECT_EQ(candidates.back().refusal(request), "");
  return candidates.front().refusal(request);
}

TEST(CudaPooledBatchNorms, RefuseWhatDoesNotFillAccessesAndLargeWindows) {
  const ops::PoolOptions seven{
      .window = {7, 7}, .strides = {7, 7}, .padding_low = {0, 0}, .padding_high = {0, 0}};
  const ops::PoolOptions three_axes{
      .window = {2, 2, 2}, .strides = {2, 2, 2}, .padding_low = {0, 0, 0}, .padding_high = {0, 0, 0}};
  const std::vector<std::pair<PooledCase, std::vector<std::string>>> refused{
      {{"Channels", {2, 8, 8, 12}, DataType::fp16, kThree}, {"12 channels", "12 channels"}},
      {{"Window", {2, 14, 14, 16}, DataType::fp16, seven}, {"a window of 7 x 7", "each 7 x 7 elements"}},
      {{"Axes", {2, 4, 4, 4, 16}, DataType::fp16, three_axes}, {"three spatial", "three spatial"}},
      {{"Type", {2, 8, 8, 64}, DataType::fp64, kThree}, {"fp64", "fp64"}}};
  for (const auto& [own, reasons] : refused) {
    EXPECT_NE(refusal(*forward_node(own).node).find(reasons[0]), std::string::npos) << own.name;
    EXPECT_NE(refusal(*backward_node(own).node).find(reasons[1]), std::string::npos) << own.name;
  }
}

// Through compile(): statistics, both fused nodes, and results in place of what they read.
TEST(CudaPooledBatchNorms, InAGraphAreAsTheReference) {
  TESSERA_NEEDS_GPU();
  const std::string window =
      "padding_high = [1, 1], padding_low = [1, 1], strides = [2, 2], window = [3, 3]}";
  const Case own =
      text_case(R"(graph g(input %image: fp32[4, 23, 26, 16], input %scale: fp32[16], input %bias: fp32[16],
      input %dy: fp32[4, 12, 13, 16]) {
    %x = square(%image)
    %n, %mean, %variance = batch_norm_training(%x, %scale, %bias)
    %r = relu(%n)
    %y, %position = max_pool(%r) {)" +
                window + R"(
    %g = max_pool_gradient(%dy, %position) {input_shape = [4, 23, 26, 16], )" +
                window + R"(
    %zero = constant() {value = fp32[] (0)}
    %open = greater(%r, %zero)
    %dz = select(%open, %g, %zero)
    %dx, %dscale, %dbias = batch_norm_gradient(%dz, %x, %scale, %mean, %variance)
    output y = %y
    output position = %position
    output dx = %dx
    output dscale = %dscale
    output dbias = %dbias
  })");
  // Sums of dz, at most four gradients within 2, times (x - mean) / deviation, at most 3 for squares of such
  // numbers.
  const Problem sums{.terms = 4 * 23 * 26, .magnitude = 8 * 3};
  const Tolerance norm =
      tolerance_for(OperatorClass::normalization, DataType::fp32, {.terms = sums.terms, .magnitude = 8});
  const Tolerance sum = tolerance_for(OperatorClass::reduction, DataType::fp32, sums);
  expect_as_reference(gpu_or_null(), own, {norm, {}, norm, sum, sum}, true);
  const DeviceRun run = run_on(gpu_or_null(), own, true);
  for (const char* kernel : {"generated.batch_norm_max_pool", "generated.max_pool_batch_norm_gradient"})
    EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), kernel), 1) << kernel;
}

}  // namespace
}  // namespace tessera::testing
