// Convolutions of images with few channels, of 16 bits and of fp32 in TF32.
#include "device_cuda/convolution_case.h"
#include "device_cuda/cuda_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/fusions.h"
#include "support/sum_tolerance.h"

namespace tessera::testing {
namespace {

// The first layers of ResNet and AlexNet on small images; broken items, tiles that cross rows, padding that
// is even and odd, one channel and four, more outputs than a warp makes, as many images as fill a GPU with
// items of several rows.
std::vector<ConvolutionCase> cases() {
  return {{"ResNet", "[2, 40, 48, 3]", "[64, 7, 7, 3]", "[2, 20, 24, 64]", 2, 3, 3},
          {"AlexNet", "[2, 63, 64, 3]", "[64, 11, 11, 3]", "[2, 15, 15, 64]", 4, 2, 2},
          {"OneImageOfManyRows", "[1, 37, 32, 3]", "[32, 3, 3, 3]", "[1, 19, 16, 32]", 2, 1, 1},
          {"FourChannels", "[3, 9, 10, 4]", "[128, 3, 3, 4]", "[3, 9, 10, 128]", 1, 1, 1},
          {"TwoChannelsUnpadded", "[2, 8, 12, 2]", "[64, 2, 2, 2]", "[2, 7, 11, 64]", 1, 0, 0},
          {"OneChannel", "[5, 28, 24, 1]", "[32, 5, 5, 1]", "[5, 14, 12, 32]", 2, 2, 2},
          {"ManyImages", "[70, 13, 8, 2]", "[32, 3, 3, 2]", "[70, 13, 8, 32]", 1, 1, 1}};
}

// Rows of no whole units.
std::vector<ConvolutionCase> cases_of_tf32() {
  std::vector<ConvolutionCase> result = cases();
  result.push_back({"NarrowRows", "[2, 11, 10, 2]", "[64, 3, 5, 2]", "[2, 11, 8, 64]", 1, 1, 1});
  return result;
}

// Without windows and outputs of more than a warp's registers hold.
std::vector<ConvolutionCase> without(std::vector<ConvolutionCase> all,
                                     const std::vector<std::string>& names) {
  std::erase_if(all, [&](const ConvolutionCase& own) {
    return std::find(names.begin(), names.end(), own.name) != names.end();
  });
  return all;
}

bool in_tf32(const std::string& type) {
  return type == "fp32";
}

// As use_convolution_statistics makes it.
std::unique_ptr<Graph> statistics_of(const ConvolutionCase& own, const std::string& type) {
  const std::string channels = own.weight.substr(1, own.weight.find(',') - 1);
  return parse_graph(fmt::format(
      "graph g(input %x: {0}{1}, input %weight: {0}{2}) {{\n"
      "  %y: {0}{3}, %sum: fp32[{7}], %squares: fp32[{7}] = fused(%x, %weight) {{kind = "
      "\"convolution_statistics\", role_values = [0, 1, 2], roles = [\"x\", \"weight\", \"y\"]}} body graph "
      "convolution_statistics(input %x: {0}{1}, input %weight: "
      "{0}{2}) {{\n"
      "    %y: {0}{3} = convolution(%x, %weight) "
      "{{dilations = [1, 1], padding_high = [{5}, {5}], padding_low = [{4}, {4}], strides = [{6}, {6}]}}\n"
      "    %wide = cast(%y) {{type = fp32}}\n    %sum = reduce_sum(%wide) {{axes = [0, 1, 2]}}\n"
      "    %square = square(%wide)\n    %squares = reduce_sum(%square) {{axes = [0, 1, 2]}}\n"
      "    output y0 = %y\n    output y1 = %sum\n    output y2 = %squares\n  }}\n"
      "  output y = %y\n  output sum = %sum\n  output squares = %squares\n}}",
      type, own.x, own.weight, own.y, own.low, own.high, own.stride, channels));
}

std::unique_ptr<Graph> biased_of(const ConvolutionCase& own, const std::string& type) {
  return fused_of(own, type, false, "relu");
}

std::unique_ptr<Graph> limited_of(const ConvolutionCase& own, const std::string& type) {
  return fused_of(own, type, false, "relu6");
}

using MakeGraph = std::unique_ptr<Graph> (*)(const ConvolutionCase& own, const std::string& type);

// As fuse_input_casts makes it of each of these: the same of an image in fp32.
template <MakeGraph Make>
std::unique_ptr<Graph> of_wide_image(const ConvolutionCase& own, const std::string& type) {
  std::string text = print(*Make(own, type));
  const auto replace_first = [&](const std::string& before, const std::string& after) {
    text.replace(text.find(before), before.size(), after);
  };
  replace_first("input %x: " + type, "input %images: fp32");
  replace_first("{\n", "{\n  %x = cast(%images) {type = " + type + "}\n");
  const std::unique_ptr<Graph> graph = parse_graph(text);
  PassContext context;
  context.target.takes_wide_image = [](const Node&) { return true; };
  EXPECT_TRUE(run_pass(*graph, "fuse_input_casts", context));
  return parse_graph(print(*graph));
}

class FewChannels : public ::testing::TestWithParam<std::tuple<ConvolutionCase, std::string>> {};

TEST_P(FewChannels, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [own, type] = GetParam();
  std::vector<MakeGraph> all{convolution_of, biased_of, limited_of, statistics_of};
  if (!in_tf32(type))
    all.insert(all.end(),
               {of_wide_image<convolution_of>, of_wide_image<biased_of>, of_wide_image<statistics_of>});
  for (const MakeGraph make : all) {
    const std::unique_ptr<Graph> graph = make(own, type);
    const Node& node = *graph->nodes().front();
    const bool statistics = node.outputs().size() == 3;
    const TensorType& y = node.output()->type();
    const int64_t channels = y.static_shape().back();
    const int64_t pixels = y.element_count() / channels;
    const int64_t terms = graph->find_input("weight")->type().element_count() / channels;
    const double largest = 4 * 4 * std::sqrt(static_cast<double>(terms));
    const double u = unit_roundoff(y.data_type);
    const Tolerance result =
        tolerance_for(OperatorClass::contraction, y.data_type, {.terms = terms, .magnitude = 4});
    Tolerances tolerances{result};
    // The reference rounds the convolution before the sum.
    if (node.inputs().size() == 3) tolerances.front().absolute += u * largest;
    if (statistics) {
      const double size = root_mean_square_of_uniform(2);
      const SummedTerms sums =
          summed_statistics({.terms = terms, .first_size = size, .second_size = size}, y.data_type, pixels);
      tolerances.push_back(sum_tolerance(sums));
      tolerances.push_back(square_sum_tolerance(sums));
    }
    const std::vector<std::string> names = expect_every_kernel(node, exact_inputs(*graph), tolerances,
                                                               std::vector<bool>(node.inputs().size(), false),
                                                               gpu_or_null(), true, {}, in_tf32(type));
    EXPECT_NE(std::find(names.begin(), names.end(), "generated.few_channels"), names.end());
  }
}

class FewChannelGradient : public FewChannels {};

// Ours alone: some of cuDNN's plans keep partial sums in 16 bits.
TEST_P(FewChannelGradient, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [own, type] = GetParam();
  std::vector<MakeGraph> all{gradient_of};
  if (!in_tf32(type)) all.push_back(of_wide_image<gradient_of>);
  for (const MakeGraph make : all) {
    const std::unique_ptr<Graph> graph = make(own, type);
    const Node& node = *graph->nodes().front();
    const TensorType& y = node.input(1)->type();
    const int64_t terms = y.element_count() / y.static_shape().back();
    const Tolerance tolerance = tolerance_for(OperatorClass::contraction, node.output()->data_type(),
                                              {.terms = terms, .magnitude = 4});
    const std::string name = "generated.few_channels";
    EXPECT_EQ(expect_every_kernel(node, exact_inputs(*graph), {tolerance}, {false, false}, gpu_or_null(),
                                  true, name, in_tf32(type)),
              std::vector<std::string>{name});
  }
}

TEST_P(FewChannels, CudaCompile) {
  const auto& [own, type] = GetParam();
  std::vector<MakeGraph> all{convolution_of, statistics_of, biased_of, gradient_of};
  if (!in_tf32(type))
    all.insert(all.end(), {of_wide_image<convolution_of>, of_wide_image<statistics_of>,
                           of_wide_image<biased_of>, of_wide_image<gradient_of>});
  for (const MakeGraph make : all)
    EXPECT_GT(compile_candidates(*make(own, type)->nodes().front(), in_tf32(type)), 0U);
}

const auto kNameOfCase = [](const auto& test) {
  return std::get<0>(test.param).name + "_" + std::get<1>(test.param);
};

INSTANTIATE_TEST_SUITE_P(DeviceCuda, FewChannels,
                         ::testing::Combine(::testing::ValuesIn(cases()), ::testing::Values("fp16", "bf16")),
                         kNameOfCase);
INSTANTIATE_TEST_SUITE_P(DeviceCudaTf32, FewChannels,
                         ::testing::Combine(::testing::ValuesIn(cases_of_tf32()), ::testing::Values("fp32")),
                         kNameOfCase);

INSTANTIATE_TEST_SUITE_P(DeviceCuda, FewChannelGradient,
                         ::testing::Combine(::testing::ValuesIn(without(cases(),
                                                                        {"AlexNet", "FourChannels"})),
                                            ::testing::Values("fp16", "bf16")),
                         kNameOfCase);
INSTANTIATE_TEST_SUITE_P(DeviceCudaTf32, FewChannelGradient,
                         ::testing::Combine(::testing::ValuesIn(without(cases_of_tf32(), {"FourChannels"})),
                                            ::testing::Values("fp32")),
                         kNameOfCase);

// An item of several rows reads those of the image once for all of them; but one image has not enough of such
// items for all multiprocessors.
TEST(FewChannels, CudaGivesEachMultiprocessorAnItem) {
  const auto text_for = [](int64_t images) {
    const ConvolutionCase own{"",
                              fmt::format("[{}, 224, 224, 3]", images),
                              "[64, 7, 7, 3]",
                              fmt::format("[{}, 112, 112, 64]", images),
                              2,
                              3,
                              3};
    const std::unique_ptr<Graph> graph = convolution_of(own, "fp16");
    const KernelRequest request{.node = *graph->nodes().front(), .frozen_inputs = {false, false}};
    cuda::Context card("h100");
    const KernelCandidate candidate = cuda::cuda_candidates(request.node, card).front();
    EXPECT_EQ(candidate.name, "generated.few_channels");
    const std::unique_ptr<Kernel> kernel = candidate.create(request);
    return card.modules().sources().front();
  };
  EXPECT_NE(text_for(1).find("item_rows = 1,"), std::string::npos);
  EXPECT_NE(text_for(4).find("item_rows = 2,"), std::string::npos);
  EXPECT_NE(text_for(64).find("item_rows = 8,"), std::string::npos);
}

// The Tensor Cores alone would cut the last bits off.
TEST(FewChannels, CudaRoundsFactorsToTheNearestOfTf32) {
  TESSERA_NEEDS_GPU();
  for (const auto& make : {convolution_of, statistics_of, gradient_of}) {
    const std::unique_ptr<Graph> graph = make(cases().front(), "fp32");
    const Node& node = *graph->nodes().front();
    const KernelRequest request{.node = node, .frozen_inputs = {false, false}, .tf32 = true};
    const auto outputs_of = [&](const std::vector<Tensor>& inputs) {
      for (const KernelCandidate& candidate : gpu_or_null()->candidates(node)) {
        if (candidate.name == "generated.few_channels")
          return run_kernel(*gpu_or_null(), *candidate.create(request), request, inputs);
      }
      return std::vector<Tensor>();
    };
    const std::vector<Tensor> expected = outputs_of(exact_inputs(*graph));
    const std::vector<Tensor> actual = outputs_of(graph_inputs(*graph));
    ASSERT_FALSE(expected.empty());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(actual[i].identical(expected[i])) << print(node);
  }
}

TEST(FewChannels, CudaRefusesOthersAndSaysWhy) {
  const auto refusal_of = [](const std::unique_ptr<Graph>& graph, bool tf32 = false) {
    for (const KernelCandidate& candidate :
         Device::open("cuda:plan-h100")->candidates(*graph->nodes().front())) {
      if (candidate.name == "generated.few_channels")
        return candidate.refusal(
            {.node = *graph->nodes().front(), .frozen_inputs = {false, false}, .tf32 = tf32});
    }
    return std::string("not offered");
  };
  const auto refusal = [&](const ConvolutionCase& own, const std::string& type) {
    return refusal_of(convolution_of(own, type));
  };
  const ConvolutionCase resnet = cases().front();
  EXPECT_EQ(refusal(resnet, "fp16"), "");
  EXPECT_NE(refusal(resnet, "fp32").find("exact fp32"), std::string::npos);
  EXPECT_EQ(refusal_of(convolution_of(resnet, "fp32"), true), "");
  EXPECT_NE(
      refusal({"", "[2, 8, 8, 8]", "[64, 3, 3, 8]", "[2, 8, 8, 64]", 1, 1, 1}, "fp16").find("8 channels"),
      std::string::npos);
  EXPECT_NE(refusal({"", "[2, 8, 8, 3]", "[64, 3, 3, 3]", "[2, 8, 8, 64]", 1, 1, 1}, "fp16").find("odd"),
            std::string::npos);
  EXPECT_NE(
      refusal({"", "[2, 8, 8, 4]", "[96, 3, 3, 4]", "[2, 8, 8, 96]", 1, 1, 1}, "fp16").find("96 output"),
      std::string::npos);
  EXPECT_EQ(refusal_of(gradient_of(resnet, "fp16")), "");
  EXPECT_NE(refusal_of(gradient_of(resnet, "fp32")).find("exact fp32"), std::string::npos);
  EXPECT_NE(refusal_of(gradient_of(cases()[1], "fp16")).find("a window of 11 x 11"), std::string::npos);
  EXPECT_NE(refusal_of(gradient_of(cases()[3], "fp16")).find("128 outputs"), std::string::npos);
}

}  // namespace
}  // namespace tessera::testing
