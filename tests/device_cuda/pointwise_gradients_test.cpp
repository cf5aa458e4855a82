// Both gradients of pointwise convolutions with those of batch normalization.
#include "device/cuda/convolution/pointwise_gradients.h"

#include <algorithm>
#include <cmath>

#include "tessera/device/common/convolution_patterns.h"
#include "tessera/passes/fuse.h"

#include "device_cuda/convolution_case.h"
#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/fusions.h"
#include "support/sum_tolerance.h"

namespace tessera::testing {
namespace {

struct PointwiseCase {
  std::string name;
  std::string pixels;  // "3, 7, 9"
  int64_t narrow = 64;
  int64_t wide = 256;
  int norms = 1;
  std::string type = "fp16";
  // u is the relu of a normalization, and y, where there are two, that of the sum of the others.
  bool again = false;

  bool tf32() const { return type == "fp32"; }
};

std::string tensor(const PointwiseCase& own, int64_t channels) {
  return fmt::format("{}[{}, {}]", own.type, own.pixels, channels);
}

// The gradients around the relu at the end of a block, and those of the convolution before it.
std::unique_ptr<Graph> gradients_of(const PointwiseCase& own) {
  const std::string attributes =
      "dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]";
  const std::string wide = tensor(own, own.wide), narrow = tensor(own, own.narrow);
  std::string text = fmt::format(
      "graph g(input %dy: {1}, input %weight: {0}[{2}, 1, 1, {3}], input %y: {4}, input %residual: {4}, "
      "input %v: {1}, input %former: {0}[{3}, 1, 1, {2}], input %scale: fp32[{2}], input %bias: fp32[{2}]",
      own.type, narrow, own.narrow, own.wide, wide);
  for (int norm = 0; norm < own.norms; ++norm)
    text += fmt::format(", input %x{0}: {1}, input %scale{0}: fp32[{2}], input %{3}{0}: fp32[{2}]{4}", norm,
                        wide, own.wide, own.again ? "bias" : "mean",
                        own.again ? "" : fmt::format(", input %variance{}: fp32[{}]", norm, own.wide));
  text += ") {\n";
  const bool recomputed_mask = own.again && own.norms == 2;
  for (int norm = 0; own.again && norm < own.norms; ++norm)
    text += fmt::format("  %n{0}, %mean{0}, %variance{0} = batch_norm_training(%x{0}, %scale{0}, %bias{0})\n",
                        norm);
  if (recomputed_mask) text += "  %s = add(%n0, %n1)\n  %q = relu(%s)\n";
  text += fmt::format(
      "  %d = convolution_data_gradient(%dy, %weight) {{input_shape = {0}, {1}}}\n"
      "  %sum = add(%d, %residual)\n  %zero = constant() {{value = {2}[] (0)}}\n  %open = greater({5}, "
      "%zero)\n"
      "  %dz = select(%open, %sum, %zero)\n"
      "  %dw = convolution_weight_gradient({5}, %dy) {{weight_shape = [{3}, 1, 1, {4}], {1}}}\n"
      "  output dz = %dz\n  output dw = %dw\n",
      wide.substr(4), attributes, own.type, own.narrow, own.wide, recomputed_mask ? "%q" : "%y");
  if (own.again) text += "  %n, %mean, %variance = batch_norm_training(%v, %scale, %bias)\n  %r = relu(%n)\n";
  for (int norm = 0; norm < own.norms; ++norm)
    text += fmt::format(
        "  %dx{0}, %dscale{0}, %dbias{0} = batch_norm_gradient(%dz, %x{0}, %scale{0}, %mean{0}, "
        "%variance{0})\n"
        "  output dscale{0} = %dscale{0}\n  output dbias{0} = %dbias{0}\n",
        norm);
  text += fmt::format(
      "  %du = convolution_data_gradient(%dx0, %former) {{input_shape = {0}, {1}}}\n"
      "  %dformer = convolution_weight_gradient({4}, %dx0) {{weight_shape = [{3}, 1, 1, {2}], {1}}}\n"
      "  output du = %du\n  output dformer = %dformer\n}}\n",
      narrow.substr(4), attributes, own.narrow, own.wide, own.again ? "%r" : "%v");
  return parse_graph(text);
}

const Node* fused_node(Graph& graph, const std::string& kind) {
  for (const auto& node : graph.nodes()) {
    if (node->body() != nullptr && node->attributes().text("kind") == kind) return node.get();
  }
  return nullptr;
}

std::unique_ptr<Graph> fused(const PointwiseCase& own) {
  const auto always = [](const Node&, size_t) { return true; };
  const FusionPattern summed = own.narrow > 128 ? backend::summed_data_gradient_pattern(always)
                                                : backend::summed_gradients_pattern(always, always);
  const PassContext context = brings({summed, backend::normalized_gradients_pattern(always)});
  std::unique_ptr<Graph> graph = gradients_of(own);
  EXPECT_TRUE(run_pass(*graph, "fuse_patterns", context));
  verify(*graph);
  return graph;
}

// One slice of the channels and several; items that are not whole; more items than blocks, and than blocks
// keep in shared memory.
std::vector<PointwiseCase> summed_cases() {
  return {{"OneSlice", "3, 7, 9"},
          {"TwoNormalizations", "2, 8, 8", 64, 256, 2},
          {"NarrowSlice", "5, 31, 33", 64, 128},
          {"TwoSlices", "2, 9, 11", 128, 256},
          {"FourSlicesOfTwo", "1, 5, 7", 128, 512, 2},
          {"ManyItems", "3, 31, 35", 128, 1024},
          {"ManyItemsOfTwo", "3, 31, 35", 128, 1024, 2, "bf16"},
          {"DataAlone", "3, 7, 9", 256, 512},
          {"DataAloneOfManyItems", "3, 31, 35", 256, 1024},
          {"DataAloneOfTwo", "2, 5, 7", 256, 128, 2, "bf16"},
          {"RecomputedMask", "3, 7, 9", 64, 256, 2, "fp16", true},
          {"RecomputedMaskInSlices", "1, 5, 7", 128, 256, 2, "bf16", true},
          {"RecomputedMaskOfManyItems", "3, 31, 35", 128, 1024, 2, "fp16", true},
          {"BrainFloatInSlices", "3, 7, 9", 128, 512, 1, "bf16"},
          {"BrainFloat", "3, 7, 9", 64, 256, 2, "bf16"},
          {"Tf32", "3, 7, 9", 64, 256, 1, "fp32"},
          {"Tf32RecomputedMask", "3, 7, 9", 64, 256, 2, "fp32", true},
          {"Tf32InSlices", "3, 31, 35", 128, 512, 2, "fp32"},
          {"Tf32DataAlone", "3, 31, 35", 256, 1024, 1, "fp32"}};
}

std::vector<PointwiseCase> normalized_cases() {
  return {{"OneItem", "1, 3, 5"},
          {"BrokenItem", "3, 7, 9"},
          {"ManyItems", "5, 31, 33", 64, 128},
          {"Recomputed", "3, 7, 9", 64, 256, 1, "fp16", true},
          {"BrainFloat", "3, 7, 9", 64, 256, 1, "bf16", true},
          {"Tf32", "5, 31, 33", 64, 128, 1, "fp32"},
          {"Tf32Recomputed", "3, 31, 35", 64, 256, 1, "fp32", true}};
}

std::string case_name(const ::testing::TestParamInfo<PointwiseCase>& test) {
  return test.param.name;
}

// Variances are positive.
std::vector<Tensor> inputs_of(const Node& node) {
  std::vector<Tensor> inputs = random_inputs(node, -2, 2);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = node.input(i)->type();
    if (node.input(i)->name().starts_with("variance"))
      inputs[i] = random_tensor(type.data_type, type.static_shape(), 0.5, 2, 11);
  }
  return inputs;
}

// What the last relu of the body takes, without rounding between.
Tensor masked_sum(const Node& node, const std::vector<Tensor>& inputs) {
  const std::unique_ptr<Graph> graph = unfused(node);
  const std::unique_ptr<Graph> wide = widened(*graph);
  Tensor sum;
  interpret(wide ? *wide : *graph, inputs, [&](const Node& reader, size_t, const Tensor& operand) {
    if (reader.operator_name() == "relu") sum = operand;
    return operand;
  });
  return sum;
}

// Draws the two addends anew wherever rounding one of them, each below 8, could open or close the mask.
void decide_mask(const Node& node, std::vector<Tensor>& inputs) {
  const double margin = 3 * 8 * unit_roundoff(node.output(0)->data_type());
  bool decided = false;
  for (uint64_t seed = 0; !decided && seed < 20; ++seed) {
    const Tensor sum = masked_sum(node, inputs);
    decided = true;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = node.input(i)->name();
      if (name != "x0" && name != "x1") continue;
      const Tensor others = random_tensor(inputs[i].data_type(), inputs[i].shape(), -2, 2, 2 * seed + i);
      for (int64_t e = 0; e < sum.size(); ++e) {
        if (std::abs(sum.at(e)) > margin) continue;
        inputs[i].set(e, others.at(e));
        decided = false;
      }
    }
  }
  EXPECT_TRUE(decided);
}

// In TF32 both factors of a product round to 11 bits.
Tolerance contraction(const Node& node, size_t output, int64_t terms, double magnitude) {
  const DataType type = node.output(output)->data_type();
  Tolerance result =
      tolerance_for(OperatorClass::contraction, type, {.terms = terms, .magnitude = magnitude});
  if (type == DataType::fp32)
    result.absolute += 2 * 0x1p-11 * magnitude * std::sqrt(static_cast<double>(terms));
  return result;
}

// The sum of dz, the data gradient with an addend where the mask is open, and those of dz (x - mean).
Tolerances gradient_tolerances(const PointwiseCase& own, const Node& node) {
  const TensorType& dz = node.output(0)->type();
  const double drawn = root_mean_square_of_uniform(2);
  const SummedProducts products{.terms = own.narrow,
                                .first_size = drawn,
                                .second_size = drawn,
                                .factors = own.tf32() ? Factors::cut_off : Factors::exact};
  SummedTerms gradients = summed_statistics(products, dz.data_type, dz.element_count() / own.wide);
  // The reference rounds the data gradient before the sum. What is cut off its factors is in proportion to
  // the data gradient, not to dz: of either sign, as dy is.
  gradients.error *= 2;
  gradients.proportional = 0;
  gradients.size = std::hypot(gradients.size, drawn);
  Tolerances result{sum_tolerance(gradients)};
  const double centered = std::hypot(drawn, 2);  // of a channel whose mean is 2
  for (double* part : {&gradients.size, &gradients.error, &gradients.bias}) *part *= centered;
  for (int norm = 0; norm < own.norms; ++norm) result.push_back(sum_tolerance(gradients));
  return result;
}

class SummedGradients : public ::testing::TestWithParam<PointwiseCase> {};

TEST_P(SummedGradients, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const PointwiseCase& own = GetParam();
  const std::unique_ptr<Graph> graph = fused(own);
  const Node& node = *fused_node(*graph, "summed_gradients");
  const int64_t pixels = node.output(0)->type().element_count() / own.wide;
  const double u = unit_roundoff(node.output(0)->data_type());
  const double largest =
      4 * 4 * std::sqrt(static_cast<double>(own.narrow));  // 4 deviations of sums of products
  Tolerance result = contraction(node, 0, own.narrow, 4);
  result.absolute += u * largest;  // the reference rounds the data gradient before the sum
  Tolerance weight = contraction(node, 0, pixels, own.again ? 40 : 4);
  // Both normalizations and their sum, about 4 in channels of the largest scale, may be rounded or not.
  if (own.again)
    weight.absolute += 4 * std::sqrt(static_cast<double>(pixels)) * u * root_mean_square_of_uniform(2) * 4;
  Tolerances tolerances{result};
  for (const Tolerance& sum : gradient_tolerances(own, node)) tolerances.push_back(sum);
  if (own.narrow <= 128) tolerances.push_back(weight);
  std::vector<Tensor> inputs = inputs_of(node);
  if (own.again) decide_mask(node, inputs);
  const std::vector<std::string> names = expect_every_kernel(
      node, with_exact_weights(node, inputs), tolerances, std::vector<bool>(node.inputs().size(), false),
      gpu_or_null(), true, {}, own.tf32());
  EXPECT_EQ(names.front(), "generated.summed_gradients");
}

TEST_P(SummedGradients, CudaCompile) {
  const std::unique_ptr<Graph> graph = fused(GetParam());
  const Node& node = *fused_node(*graph, "summed_gradients");
  EXPECT_GT(compile_candidates(node, GetParam().tf32()), 0U);
  EXPECT_GT(compile_candidates(node, GetParam().tf32(), "b200"), 0U);  // without warpgroups
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, SummedGradients, ::testing::ValuesIn(summed_cases()), case_name);

class NormalizedGradients : public ::testing::TestWithParam<PointwiseCase> {};

TEST_P(NormalizedGradients, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const PointwiseCase& own = GetParam();
  const std::unique_ptr<Graph> graph = fused(own);
  const Node& node = *fused_node(*graph, "normalized_gradients");
  const int64_t pixels = node.output(0)->type().element_count() / own.narrow;
  const double u = unit_roundoff(node.output(0)->data_type());
  // d = dy factor + y correlation + offset is below 10 and may round to the other side.
  constexpr double kLargest = 10;
  Tolerance data = contraction(node, 0, own.wide, 2 * kLargest);
  Tolerance weight = contraction(node, 1, pixels, 2 * kLargest);
  data.absolute += u * kLargest * 2 * std::sqrt(static_cast<double>(own.wide));
  weight.absolute += u * kLargest * 2 * std::sqrt(static_cast<double>(pixels));
  const std::vector<std::string> names = expect_every_kernel(node, inputs_of(node), {data, weight},
                                                             std::vector<bool>(node.inputs().size(), false),
                                                             gpu_or_null(), true, {}, own.tf32());
  EXPECT_EQ(names.front(), "generated.normalized_gradients");
}

TEST_P(NormalizedGradients, CudaCompile) {
  const std::unique_ptr<Graph> graph = fused(GetParam());
  EXPECT_GT(compile_candidates(*fused_node(*graph, "normalized_gradients"), GetParam().tf32()), 0U);
}

// It is asked before the patterns are looked for, and must say what they find.
TEST_P(NormalizedGradients, AreSaidToMakeTheirActivation) {
  const std::unique_ptr<Graph> graph = gradients_of(GetParam());
  const auto always = [](const Node&, size_t) { return true; };
  const auto never = [](const Node&, size_t) { return false; };
  const Node& late = *graph->find("dformer")->producer();
  EXPECT_TRUE(backend::recomputes_activation(late, always, always));
  EXPECT_FALSE(backend::recomputes_activation(late, never, always));
  EXPECT_FALSE(backend::recomputes_activation(late, always, never));
  // Its gradient is no normalization's.
  EXPECT_FALSE(backend::recomputes_activation(*graph->find("dw")->producer(), always, always));
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, NormalizedGradients, ::testing::ValuesIn(normalized_cases()), case_name);

TEST(PointwiseGradients, CudaRefusesOthersAndSaysWhy) {
  const auto refusal = [](const PointwiseCase& own, const std::string& kind) {
    const std::unique_ptr<Graph> graph = fused(own);
    const Node& node = *fused_node(*graph, kind);
    const KernelCandidate first = Device::open("cuda:plan-h100")->candidates(node).front();
    EXPECT_EQ(first.name, "generated." + kind);
    return first.refusal({node, std::vector<bool>(node.inputs().size(), false)});
  };
  const auto expect_refusal = [&](const PointwiseCase& own, const std::string& kind,
                                  const std::string& reason) {
    EXPECT_NE(refusal(own, kind).find(reason), std::string::npos) << refusal(own, kind);
  };
  EXPECT_EQ(refusal({"", "2, 3, 3"}, "summed_gradients"), "");
  EXPECT_EQ(refusal({"", "2, 3, 3"}, "normalized_gradients"), "");
  expect_refusal({"", "2, 3, 3", 96, 256}, "summed_gradients", "96 channels of dy");
  expect_refusal({"", "2, 3, 3", 64, 192}, "summed_gradients", "192 channels of x");
  expect_refusal({"", "2, 3, 3", 64, 256, 3}, "summed_gradients", "3 normalizations");
  expect_refusal({"", "2, 3, 3", 32, 256}, "normalized_gradients", "32 channels of x");
  expect_refusal({"", "2, 3, 3", 64, 512}, "normalized_gradients", "512 channels of dy");
  expect_refusal({"", "2, 3, 3", 64, 256, 1, "fp32"}, "summed_gradients", "exact fp32");
  expect_refusal({"", "2, 3, 3", 64, 256, 1, "fp32"}, "normalized_gradients", "exact fp32");
}

// What a kernel gains does not pay for small tensors.
TEST(PointwiseGradients, CudaTakesWhatTheCacheDoesNotHold) {
  const cuda::GpuTraits gpu = cuda::Context("h100").traits();
  const auto data_gradient = [](const Graph& graph) {
    return nodes_of(graph, "convolution_data_gradient").front();
  };
  const std::unique_ptr<Graph> small = gradients_of({"", "2, 56, 56"}),
                               large = gradients_of({"", "64, 56, 56"});
  const auto summed = [&](const Graph& graph, size_t norms) {
    return cuda::takes_summed_gradients(*data_gradient(graph), norms, false, gpu);
  };
  EXPECT_EQ(summed(*small, 1), cuda::FusedGradients::none);
  EXPECT_EQ(summed(*large, 1), cuda::FusedGradients::both);
  EXPECT_EQ(summed(*large, 3), cuda::FusedGradients::none);
  EXPECT_EQ(summed(*gradients_of({"", "64, 28, 28", 256, 1024}), 1), cuda::FusedGradients::data);
  const std::unique_ptr<Graph> slices = gradients_of({"", "64, 28, 28", 128, 512});
  const cuda::GpuTraits other = cuda::Context("b200").traits();
  EXPECT_TRUE(cuda::recomputes_mask(*data_gradient(*slices), false, gpu));
  EXPECT_TRUE(cuda::recomputes_mask(*data_gradient(*large), false, other));
  EXPECT_FALSE(cuda::recomputes_mask(*data_gradient(*slices), false, other));
  const std::unique_ptr<Graph> wide = gradients_of({"", "64, 56, 56", 64, 256, 1, "fp32"});
  EXPECT_EQ(summed(*wide, 1), cuda::FusedGradients::none);
  EXPECT_EQ(cuda::takes_summed_gradients(*data_gradient(*wide), 1, true, gpu), cuda::FusedGradients::both);
  const auto former = [](const Graph& graph) { return nodes_of(graph, "convolution_data_gradient").back(); };
  EXPECT_FALSE(cuda::takes_normalized_gradients(*former(*small), false, gpu));
  EXPECT_TRUE(cuda::takes_normalized_gradients(*former(*large), false, gpu));
}

TEST(PointwiseGradients, CudaPlanOfResnetHasThemInItsFirstStages) {
  for (const Precision precision : {Precision::fp16, Precision::tf32}) {
    const auto executable = planned_training("resnet50", 256, {.precision = precision});
    EXPECT_EQ(count_of_kernel(*executable, "generated.summed_gradients"), 12u);
    EXPECT_EQ(count_of_kernel(*executable, "generated.normalized_gradients"), 4u);
  }
}

}  // namespace
}  // namespace tessera::testing
