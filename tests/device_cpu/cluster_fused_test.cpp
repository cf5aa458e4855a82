// Clusters: fused as unfused, in place where the plan allows.
#include "device_cpu/cpu_case.h"

namespace tessera::testing {
namespace {

Case bias_gelu(const std::string& type) {
  return text_case("graph bias_gelu(input %x: " + type + "[300, 130], input %b: " + type +
                   "[130]) { %s = add(%x, %b) %y = gelu(%s) %z = multiply(%y, %x) output y = %y "
                   "output z = %z }");
}

TEST(Clusters, ActivationWithBias) {
  for (const std::string type : {"fp32", "fp64", "fp16", "bf16"})
    expect_as_reference(bias_gelu(type), OperatorClass::fused, {.magnitude = 8}, true);
}

TEST(Clusters, EndingReduction) {
  for (const std::string axes : {"[]", "[0]", "[1]", "[2]", "[0, 1]", "[1, 2]", "[0, 2]"}) {
    const Case own = text_case(
        "graph end(input %x: fp32[40, 30, 65], input %m: bool[40, 30, 65], input %z: fp32[40, 30, 65]) {"
        "%g = select(%m, %x, %z) %h = multiply(%g, %z) %s = reduce_sum(%h) {axes = " +
        axes + "} output g = %g output s = %s }");
    const int64_t terms =
        element_count(own.inputs[0].shape()) / own.graph->outputs()[1].value->type().element_count();
    // A selection has no rounding; the terms are products of numbers within 2.
    expect_as_reference(own, {{}, tolerance_for(OperatorClass::reduction, DataType::fp32, {terms, 4})}, true);
    EXPECT_EQ(run_on_cpu(own, true).kernels, std::vector<std::string>{"loops.cluster"});
  }
}

TEST(Clusters, ReducesMixedTypes) {
  Case own = text_case(
      "graph mixed(input %x: fp16[70, 90], input %i: int32[90], input %d: fp64[70, 1]) {"
      "%a = cast(%x) {type = fp64} %b = multiply(%a, %d) %c = cast(%i) {type = fp64} %e = add(%b, %c)"
      "%f = cast(%e) {type = fp32} %s = reduce_max(%f) {axes = [0]} %r = cast(%e) {type = int32}"
      "output s = %s output r = %r }");
  // The largest of some columns stand in the last row.
  for (int64_t column = 0; column < 90; column += 2) own.inputs[0].set(69 * 90 + column, 40);
  own.inputs[2].set(69, 1.5);
  // Computed in fp64, rounded to fp32 once; whole numbers are exact.
  expect_as_reference(own, {tolerance_for(OperatorClass::elementwise, DataType::fp32, {.magnitude = 0}), {}},
                      true);
}

TEST(Clusters, RandomMasks) {
  Case own = text_case(
      "graph dropped(input %x: fp32[123, 45], input %counter: int64[2]) {"
      "%y = dropout(%x, %counter) {rate = 0.3, stream = 7} %z = multiply(%y, %x) output z = %z }",
      4, 1, 2);
  expect_as_reference(own, OperatorClass::fused, {.magnitude = 8}, true);
  own.inputs[1] = Tensor::from<int64_t>({2}, {42, int64_t{1} << 33});
  expect_as_reference(own, OperatorClass::fused, {.magnitude = 8}, true);
}

constexpr const char* kAdam = R"(graph adam(
    parameter %w: fp32[100, 70], state %m: fp32[100, 70], state %v: fp32[100, 70], input %g: fp32[100, 70],
    input %rate: fp32[]) {
  %b1: fp32[] = constant() {value = fp32[] (0.9)}
  %b2: fp32[] = constant() {value = fp32[] (0.999)}
  %c1: fp32[] = constant() {value = fp32[] (0.1)}
  %c2: fp32[] = constant() {value = fp32[] (0.001)}
  %epsilon: fp32[] = constant() {value = fp32[] (1e-08)}
  %m_old = multiply(%m, %b1)
  %m_add = multiply(%g, %c1)
  %m_new = add(%m_old, %m_add)
  %v_old = multiply(%v, %b2)
  %g_square = square(%g)
  %v_add = multiply(%g_square, %c2)
  %v_new = add(%v_old, %v_add)
  %root = sqrt(%v_new)
  %below = add(%root, %epsilon)
  %direction = divide(%m_new, %below)
  %change = multiply(%direction, %rate)
  %w_new = subtract(%w, %change)
  update %w = %w_new
  update %m = %m_new
  update %v = %v_new
})";

// One kernel, no memory beside the variables, and three steps as the reference.
TEST(Clusters, OptimizerUpdateInPlace) {
  Case own = text_case(kAdam, 7, 0.1, 1);
  const std::unique_ptr<Executable> executable = compile(*own.graph, Device::cpu(), {});
  size_t kernels = 0;
  for (const NodeReport& node : executable->nodes()) kernels += node.kernel == "loops.cluster" ? 1 : 0;
  EXPECT_EQ(kernels, 1u);
  EXPECT_LE(executable->memory_plan().peak_bytes, 1024);
  auto variables = std::make_shared<Variables>(Device::cpu());
  for (size_t i = 0; i < 3; ++i) variables->set(own.graph->inputs()[i]->name(), own.inputs[i]);
  executable->bind(variables);
  for (int step = 0; step < 3; ++step) {
    executable->run({{"g", own.inputs[3]}, {"rate", own.inputs[4]}});
    const ReferenceResult expected = run_reference(*own.graph, own.inputs);
    for (size_t i = 0; i < 3; ++i) own.inputs[i] = expected.updates[i];
  }
  for (size_t i = 0; i < 3; ++i) {
    const std::string& name = own.graph->inputs()[i]->name();
    expect_close(variables->get(name), own.inputs[i],
                 tolerance_for(OperatorClass::fused, DataType::fp32, {.magnitude = 10}), name);
  }
}

// Such a cast is no work; what it reads is wanted elsewhere too.
TEST(Clusters, CastsOfConditionsThatGoOut) {
  const Case own = text_case(R"(graph conditions(input %m: fp32[4, 2], input %g: fp32[4, 2]) {
  %zero = constant() {value = fp32[] (0)}
  %less = less(%m, %g)
  %mask = cast(%less) {type = fp32}
  %not_less = logical_not(%less)
  %tanh = tanh(%m)
  %mean = reduce_mean(%tanh)
  %square = square(%tanh)
  %selected = select(%not_less, %g, %zero)
  %sum = add(%square, %selected)
  output mask = %mask
  output mean = %mean
  output sum = %sum
})");
  expect_as_reference(own, OperatorClass::elementwise, {.magnitude = 4}, true);
}

}  // namespace
}  // namespace tessera::testing
