// Convolutions of few pixels, whose sums the blocks of a cluster divide.
#include <array>

#include "device_cuda/convolution_case.h"
#include "device_cuda/cuda_case.h"
#include "passes/run_pass.h"
#include "support/every_kernel.h"
#include "support/sum_tolerance.h"

namespace tessera::testing {
namespace {

const std::string kName = "generated.split_convolution";

// The last layers of a residual network for one image; tiles that are not full and cross rows and images,
// strides, padding that is even and odd, 2 to 8 blocks that divide parts evenly and not, a window of one row.
std::vector<ConvolutionCase> cases() {
  return {{"LastLayer", "[1, 7, 7, 512]", "[512, 3, 3, 512]", "[1, 7, 7, 512]", 1, 1, 1},
          {"Pointwise", "[1, 7, 7, 1024]", "[128, 1, 1, 1024]", "[1, 7, 7, 128]", 1, 0, 0},
          {"PointwiseStrided", "[1, 14, 14, 512]", "[64, 1, 1, 512]", "[1, 7, 7, 64]", 2, 0, 0},
          {"Strided", "[1, 15, 14, 128]", "[96, 3, 3, 128]", "[1, 8, 7, 96]", 2, 1, 1},
          {"ThreeImages", "[3, 5, 6, 64]", "[32, 3, 3, 64]", "[3, 5, 6, 32]", 1, 1, 1},
          {"OddPadding", "[2, 9, 4, 192]", "[64, 2, 2, 192]", "[2, 9, 4, 64]", 1, 1, 0},
          {"LargeWindow", "[1, 6, 6, 64]", "[64, 5, 5, 64]", "[1, 2, 2, 64]", 1, 0, 0},
          {"OnePixel", "[1, 1, 1, 576]", "[32, 1, 1, 576]", "[1, 1, 1, 32]", 1, 0, 0}};
}

std::vector<std::unique_ptr<Graph>> graphs_of(const ConvolutionCase& own, const std::string& type) {
  std::vector<std::unique_ptr<Graph>> all;
  all.push_back(convolution_of(own, type));
  for (const bool residual : {false, true}) {
    for (const char* activation : {"", "relu"}) all.push_back(fused_of(own, type, residual, activation));
  }
  if (type != "fp32") all.push_back(fused_of(own, type, false, "silu"));
  return all;
}

// For one that is offered the weights as never changing.
KernelRequest frozen_request(const Node& node, bool tf32 = false) {
  KernelRequest request{
      .node = node, .frozen_inputs = std::vector<bool>(node.inputs().size(), false), .tf32 = tf32};
  for (size_t i = 0; i < node.inputs().size(); ++i)
    request.frozen_inputs[i] = node.input(i)->name() == "weight";
  return request;
}

// What is added to the convolution, so many times as large.
std::vector<Tensor> with_added(const Node& node, std::vector<Tensor> inputs, double times) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.input(i)->name() != "bias" && node.input(i)->name() != "residual") continue;
    for (int64_t e = 0; e < inputs[i].size(); ++e) inputs[i].set(e, times * inputs[i].at(e));
  }
  return inputs;
}

class SplitConvolution : public ::testing::TestWithParam<std::tuple<ConvolutionCase, std::string>> {
 protected:
  bool in_tf32() const { return std::get<1>(GetParam()) == "fp32"; }
};

TEST_P(SplitConvolution, CudaEveryKernel) {
  TESSERA_NEEDS_GPU();
  const auto& [own, type] = GetParam();
  for (const std::unique_ptr<Graph>& graph : graphs_of(own, type)) {
    const Node& node = *graph->nodes().front();
    const TensorType& y = node.output()->type();
    const int64_t terms = graph->find_input("weight")->type().element_count() / y.static_shape().back();
    Tolerance tolerance =
        tolerance_for(OperatorClass::contraction, y.data_type, {.terms = terms, .magnitude = 4});
    // What is added is of the sums' size, so that none of it is lost in their rounding. The reference rounds
    // the convolution, and then each sum, before the next: each at most five deviations large, by half a
    // unit.
    const double size = root_mean_square_of_uniform(2) * root_mean_square_of_uniform(2) *
                        std::sqrt(static_cast<double>(terms));
    const std::vector<Tensor> inputs = with_added(node, exact_inputs(*graph), size);
    const auto added = static_cast<double>(node.inputs().size() - 2);
    tolerance.absolute += added * unit_roundoff(y.data_type) * (5 + 2 * added) * size;
    EXPECT_EQ(expect_every_kernel(node, inputs, {tolerance}, frozen_request(node).frozen_inputs,
                                  gpu_or_null(), true, kName, in_tf32()),
              std::vector<std::string>{kName});
  }
}

TEST_P(SplitConvolution, CudaCompile) {
  const auto& [own, type] = GetParam();
  for (const std::unique_ptr<Graph>& graph : graphs_of(own, type))
    EXPECT_GT(compile_candidates(*graph->nodes().front(), in_tf32()), 0U);
}

// Of weights that never change it takes tiles that it does not divide, too, and begins ahead.
TEST(SplitConvolution, CudaBeginsAheadWhereWeightsNeverChange) {
  const ConvolutionCase own{"", "[1, 23, 24, 64]", "[256, 1, 1, 64]", "[1, 23, 24, 256]", 1, 0, 0};
  const std::unique_ptr<Graph> graph = convolution_of(own, "fp16");
  const KernelRequest request = frozen_request(*graph->nodes().front());
  cuda::Context card("h100");
  const std::vector<KernelCandidate> candidates = cuda::cuda_candidates(request.node, card);
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [](const KernelCandidate& candidate) { return candidate.name == kName; });
  ASSERT_NE(found, candidates.end());
  EXPECT_NE(found->refusal({.node = request.node, .frozen_inputs = {false, false}}), "");
  ASSERT_EQ(found->refusal(request), "");
  const std::unique_ptr<Kernel> kernel = found->create(request);
  const std::string source = card.modules().sources().front();
  EXPECT_NE(source.find("splits = 1,"), std::string::npos);
  EXPECT_NE(source.find("ahead = true"), std::string::npos);
  EXPECT_NE(source.find("griddepcontrol.launch_dependents"), std::string::npos);
  EXPECT_FALSE(cuda::machine_code(source, card.traits().architecture).empty());
}

// Layer after layer, each reading what the one before it may still write: of many runs each is right.
TEST(SplitConvolution, CudaWaitsForTheLayerBefore) {
  TESSERA_NEEDS_GPU();
  std::string inputs = "input %x0: fp16[1, 7, 7, 256]", nodes;
  constexpr int kLayers = 12;
  for (int layer = 0; layer < kLayers; ++layer) {
    inputs += fmt::format(", parameter %weight{}: fp16[256, 3, 3, 256]", layer);
    nodes += fmt::format(
        "  %x{1}: fp16[1, 7, 7, 256] = convolution(%x{0}, %weight{0}) {{dilations = [1, 1], padding_high = "
        "[1, 1], padding_low = [1, 1], strides = [1, 1]}}\n",
        layer, layer + 1);
  }
  const std::string text = fmt::format("graph g({}) {{\n{}  output y = %x{}\n}}", inputs, nodes, kLayers);
  const auto make = [&](const std::shared_ptr<Device>& device) {
    std::unique_ptr<Executable> executable =
        compile(*parse_graph(text), device, {.passes = {.frozen = true}});
    const auto variables = std::make_shared<Variables>(device);
    for (uint64_t layer = 0; layer < kLayers; ++layer)
      variables->set(fmt::format("weight{}", layer),
                     random_tensor(DataType::fp16, {256, 3, 3, 256}, -0.036, 0.036, layer));
    executable->bind(variables);
    return executable;
  };
  const std::array<Tensor, 2> images{random_tensor(DataType::fp16, {1, 7, 7, 256}, -1, 1, 100),
                                     random_tensor(DataType::fp16, {1, 7, 7, 256}, -1, 1, 101)};
  const auto executable = make(gpu_or_null());
  EXPECT_EQ(std::count_if(executable->nodes().begin(), executable->nodes().end(),
                          [](const NodeReport& node) { return node.kernel == kName; }),
            kLayers);
  const auto expected = make(Device::cpu());
  std::array<Tensor, 2> first;
  for (size_t i = 0; i < images.size(); ++i) {
    first[i] = executable->run({{"x0", images[i]}}).at("y").clone();
    // A layer keeps the size of what it reads, and adds rounding errors of that size: some units each.
    const Tolerance tolerance{.absolute = 4 * kLayers * unit_roundoff(DataType::fp16)};
    EXPECT_TRUE(is_close(first[i], expected->run({{"x0", images[i]}}).at("y").to_doubles(), tolerance));
  }
  for (int run = 0; run < 200; ++run) {
    const auto i = static_cast<size_t>(run % 2);
    ASSERT_TRUE(executable->run({{"x0", images[i]}}).at("y").identical(first[i])) << "run " << run;
  }
}

INSTANTIATE_TEST_SUITE_P(DeviceCuda, SplitConvolution,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values("fp16", "bf16", "fp32")),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param);
                         });

TEST(SplitConvolution, CudaRefusesOthersAndSaysWhy) {
  const auto refusal = [](const ConvolutionCase& own, const std::string& type = "fp16", bool tf32 = false,
                          const std::string& card = "h100") {
    const std::unique_ptr<Graph> graph = convolution_of(own, type);
    const Node& node = *graph->nodes().front();
    for (const KernelCandidate& candidate : Device::open("cuda:plan-" + card)->candidates(node)) {
      if (candidate.name == kName)
        return candidate.refusal({.node = node, .frozen_inputs = {false, false}, .tf32 = tf32});
    }
    return std::string("not offered");
  };
  const ConvolutionCase last = cases().front();
  EXPECT_EQ(refusal(last), "");
  EXPECT_EQ(refusal(last, "fp32", true), "");
  EXPECT_NE(refusal(last, "fp32").find("exact fp32"), std::string::npos);
  EXPECT_NE(refusal(last, "fp16", false, "a100").find("no clusters"), std::string::npos);
  const auto refused_for = [&](const ConvolutionCase& own, const std::string& reason) {
    EXPECT_NE(refusal(own).find(reason), std::string::npos) << refusal(own);
  };
  refused_for({"", "[1, 7, 7, 96]", "[64, 3, 3, 96]", "[1, 7, 7, 64]", 1, 1, 1}, "96 channels");
  refused_for({"", "[1, 7, 7, 512]", "[40, 3, 3, 512]", "[1, 7, 7, 40]", 1, 1, 1}, "40 output channels");
  refused_for({"", "[1, 7, 7, 128]", "[64, 1, 1, 128]", "[1, 7, 7, 64]", 1, 0, 0}, "sums of 2 parts");
  // Many images have tiles enough.
  refused_for({"", "[64, 7, 7, 512]", "[512, 3, 3, 512]", "[64, 7, 7, 512]", 1, 1, 1}, "784 tiles");
}

}  // namespace
}  // namespace tessera::testing
