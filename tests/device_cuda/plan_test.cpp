// Plans for a card that is not there.
#include <algorithm>
#include <cstdlib>

#include "tessera/compile/threaded_kernels.h"

#include "device_cuda/cuda_case.h"
#include "device_cuda/plan_case.h"
#include "support/expect_error.h"
#include "support/training_step.h"

namespace tessera::testing {
namespace {

TEST(CudaPlan, IsMadeBySeveralThreads) {
  const std::shared_ptr<Device> device = Device::open("cuda:plan-h100");
  auto* threaded = device->extension<ThreadedKernels>();
  ASSERT_NE(threaded, nullptr);  // across the border of the plug-in
  EXPECT_GT(threaded->planning_threads(), 1U);
  EXPECT_EQ(Device::null()->extension<ThreadedKernels>(), nullptr);
}

TEST(CudaPlan, OfAResnetStepHoldsNoTransposeAndKnowsItsMemory) {
  const auto executable = planned_training("resnet50", 8, {.precision = Precision::fp16});
  size_t convolutions = 0;
  for (const NodeReport& node : executable->nodes()) {
    EXPECT_NE(node.operator_name, "transpose") << node.name;
    if (node.operator_name.find("convolution") != std::string::npos) {
      const bool stem = node.name.starts_with("conv1");
      EXPECT_EQ(node.kernel, stem ? "generated.few_channels" : "cudnn.convolution") << node.name;
      ++convolutions;
    }
  }
  EXPECT_EQ(convolutions, 53 * 3 - 1);  // the first has no data gradient
  EXPECT_GT(executable->memory_plan().peak_bytes, 0);
}

// Of large results in 16 bits by cuDNN, if sums may differ in their order; else, and in TF32, by kernels of
// our own.
TEST(CudaPlan, AddsUpResultsOfConvolutionsWhereThatIsFasterAndAllowed) {
  const auto takes = [](const std::string& type, int64_t images, int64_t inputs, int64_t outputs,
                        PassOptions options) {
    const std::unique_ptr<Graph> graph = parse_graph(fmt::format(
        "graph g(input %x: {0}[{1}, 56, 56, {2}], input %weight: {0}[{3}, 1, 1, {2}]) {{\n  %y = "
        "convolution(%x, "
        "%weight) {{dilations = [1, 1], padding_high = [0, 0], padding_low = [0, 0], strides = [1, 1]}}\n"
        "  output y = %y\n}}",
        type, images, inputs, outputs));
    const PassTarget target = Device::open("cuda:plan-h100")->pass_target(options);
    const auto pattern = std::find_if(
        target.patterns.begin(), target.patterns.end(),
        [](const FusionPattern& candidate) { return candidate.kind == "convolution_statistics"; });
    FusionMatch match;
    match.add_roles_of(*graph->nodes().front());
    return pattern->worth(match);
  };
  PassOptions any_order;
  any_order.deterministic = false;
  EXPECT_TRUE(takes("fp16", 64, 64, 256, any_order));
  EXPECT_TRUE(takes("bf16", 64, 64, 256, any_order));
  EXPECT_FALSE(takes("fp16", 62, 64, 256, any_order));  // of 96 MiB less one image
  EXPECT_FALSE(takes("fp32", 64, 64, 256, any_order));
  EXPECT_TRUE(takes("fp16", 64, 64, 256, {}));
  EXPECT_FALSE(takes("fp16", 1, 64, 256, {}));
  EXPECT_FALSE(takes("fp16", 128, 256, 1024, {}));
  EXPECT_FALSE(takes("fp32", 64, 64, 256, {}));
  for (PassOptions tf32 : {PassOptions(), any_order}) {
    tf32.precision = Precision::tf32;
    EXPECT_EQ(takes("fp32", 64, 64, 256, tf32), tf32_allowed());
    EXPECT_FALSE(takes("fp32", 1, 64, 256, tf32));
    EXPECT_FALSE(takes("fp32", 64, 256, 1024, tf32));
  }
}

// Forward and the weight gradient; where fp32 is exact neither.
TEST(CudaPlan, OfTf32TakesKernelsOfItsOwnForTheFirstConvolution) {
  for (const std::string network : {"resnet50", "alexnet"}) {
    const auto count = [&](Precision precision) {
      return count_of_kernel(*planned_training(network, 8, {.precision = precision}),
                             "generated.few_channels");
    };
    EXPECT_EQ(count(Precision::tf32), tf32_allowed() ? 2u : 0u) << network;
    EXPECT_EQ(count(Precision::fp32), 0u) << network;
  }
}

// Weights are converted and multiplied by the factors of their normalizations when they are bound.
TEST(CudaPlan, OfInferencePreparesWeightsOnce) {
  const models::Model model = models::create("resnet50");
  const models::Network network = models::build(model, 8);
  for (const Precision precision : {Precision::fp16, Precision::tf32}) {
    const auto executable = planned(*network.graph, {.precision = precision, .frozen = true});
    const size_t kernels =
        count_nodes(*executable, [](const NodeReport& node) { return !node.once && node.kernel != "alias"; });
    // Convolutions, two poolings, the last layer, and a cast of what it reads and of what it makes. Where a
    // convolution was fused with what no kernel takes, that is a cluster after it.
    const size_t clusters = executable->replaced().size();
    EXPECT_EQ(kernels, 53 + 3 + (precision == Precision::fp16 ? 2 : 0) + clusters) << to_string(precision);
  }
}

// Of ResNet-50's images none is made in 16 bits. The kernel for AlexNet's first layer rounds them, that for
// its weight gradient does not, for which they are rounded when it runs.
TEST(CudaPlan, RoundsImagesWhereTheyAreRead) {
  const auto writers = [](const std::string& network, int64_t extent, const PassOptions& passes) {
    const auto executable = planned_training(network, 8, passes);
    std::vector<std::string> result;
    for (const auto& node : executable->graph().nodes()) {
      if (node->output()->shape() == SymbolicShape{8, extent, extent, 3})
        result.push_back(node->body() == nullptr ? node->operator_name() : node->attributes().text("kind"));
      const bool gradient = node->operator_name() == "convolution_weight_gradient";
      if (gradient && node->input(0)->shape() == SymbolicShape{8, extent, extent, 3})
        result.push_back("read by " + node->operator_name());
    }
    return result;
  };
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    for (const bool deterministic : {true, false}) {
      const PassOptions passes{.precision = precision, .deterministic = deterministic};
      EXPECT_EQ(writers("resnet50", 224, passes), std::vector<std::string>{});
      const std::vector<std::string> late{"cast", "read by convolution_weight_gradient"};
      EXPECT_EQ(writers("alexnet", 224, passes), late);
    }
  }
}

// Unasked it does so for next to nothing, in time as in memory.
TEST(CudaPlan, RecomputesFewActivationsUnlessItIsAskedTo) {
  const auto plan = [](std::optional<bool> recompute) {
    return planned_training("resnet101", 128, {.precision = Precision::fp16, .recompute = recompute});
  };
  const auto recomputed = [](const Executable& executable) {
    return count_nodes(executable, [](const NodeReport& node) {
      const size_t at = node.name.find(".recomputed/");
      const bool is_part = std::count(node.name.begin(), node.name.end(), '/') > 1;
      return at != std::string::npos && !is_part;
    });
  };
  const auto unasked = plan(std::nullopt), never = plan(false), always = plan(true);
  EXPECT_EQ(recomputed(*never), 0u);
  EXPECT_GT(recomputed(*unasked), 0u);
  EXPECT_LE(recomputed(*unasked), 4u);
  EXPECT_GT(recomputed(*always), 50u);
  const auto peak = [](const Executable& executable) {
    return static_cast<double>(executable.memory_plan().peak_bytes);
  };
  EXPECT_LT(peak(*unasked), 0.997 * peak(*never));
  EXPECT_LT(peak(*always), 0.9 * peak(*unasked));
}

TEST(CudaPlan, NeedsLessMemoryWhereItRecomputes) {
  for (const bool deterministic : {true, false}) {
    const auto peak = [&](bool recompute) {
      const PassOptions passes{
          .precision = Precision::fp16, .deterministic = deterministic, .recompute = recompute};
      return planned_training("resnet50", 256, passes)->memory_plan().peak_bytes;
    };
    const int64_t kept = peak(false);
    const int64_t recomputed = peak(true);
    EXPECT_LT(recomputed, 0.87 * static_cast<double>(kept)) << kept;
  }
}

TEST(CudaPlan, AddsStatisticsInConvolutionsOfCudnnOnlyWhereRunsMayDiffer) {
  const auto count = [](bool deterministic, bool own) {
    return count_nodes(
        *planned_training("resnet50", 256, {.precision = Precision::fp16, .deterministic = deterministic}),
        [&](const NodeReport& node) {
          return node.operator_name == "fused:convolution_statistics" &&
                 node.kernel.starts_with("generated.") == own;
        });
  };
  // The stem, all of layer 1, the wide ones of layers 2 and 3.
  EXPECT_EQ(count(false, true), 1u);
  EXPECT_EQ(count(false, false), 18u);
  // The stem; of one window position those of layers 1 and 2, and layer 3's first.
  EXPECT_EQ(count(true, true), 11u);
  EXPECT_EQ(count(true, false), 0u);
}

// The nodes of the plan that write a tensor of the stem's extents.
std::vector<std::string> writers_of_stem(const Graph& graph) {
  std::vector<std::string> result;
  for (const auto& node : graph.nodes()) {
    for (const auto& output : node->outputs()) {
      if (output->shape() == SymbolicShape{256, 112, 112, 64} && node->operator_name() != "reshape")
        result.push_back(node->body() == nullptr ? node->operator_name() : node->attributes().text("kind"));
    }
  }
  return result;
}

TEST(CudaPlan, NormalizesThePooledStemInOneStepEachWay) {
  for (const bool deterministic : {true, false}) {
    const auto executable =
        planned_training("resnet50", 256, {.precision = Precision::fp16, .deterministic = deterministic});
    EXPECT_EQ(count_of_kernel(*executable, "generated.batch_norm_max_pool"), 1u);
    EXPECT_EQ(count_of_kernel(*executable, "generated.max_pool_batch_norm_gradient"), 1u);
    const std::vector<std::string> expected{"convolution_statistics", "max_pool_batch_norm_gradient"};
    EXPECT_EQ(writers_of_stem(executable->graph()), expected);
  }
}

TEST(CudaPlan, TrainsInTf32UnlessItIsForbidden) {
  const auto card = Device::open("cuda:plan-h100");
  const char* before = std::getenv("NVIDIA_TF32_OVERRIDE");
  const std::string kept = before == nullptr ? "" : before;
  unsetenv("NVIDIA_TF32_OVERRIDE");
  EXPECT_EQ(card->training_precision(), Precision::tf32);
  setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
  EXPECT_EQ(card->training_precision(), Precision::tf32);
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  EXPECT_EQ(card->training_precision(), Precision::fp32);
  before == nullptr ? unsetenv("NVIDIA_TF32_OVERRIDE") : setenv("NVIDIA_TF32_OVERRIDE", kept.c_str(), 1);
}

TEST(CudaPlan, TheFlagThatHaltsTrainingTakesAtMostOneKernelMore) {
  const models::Model model = models::create("resnet50");
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    const auto count = [&](bool halting) {
      const train::StepGraph step =
          training_step(model, {.batch = 64, .precision = precision, .clip_norm = 1, .halting = halting});
      return planned(*step.graph, {.precision = precision})->nodes().size();
    };
    EXPECT_LE(count(true), count(false) + 1) << to_string(precision);
  }
}

TEST(CudaPlan, TakesAttentionOfCudnnInSixteenBitsAndWidthsOfWholeAccesses) {
  const auto kernels = [](const std::string& type, int64_t width, const std::string& card = "h100") {
    const std::unique_ptr<Graph> graph = parse_graph(fmt::format(
        "graph g(input %q: {0}[2, 4, 100, {1}], input %k: {0}[2, 4, 120, {1}], input %dy: {0}[2, 4, 100, "
        "{1}]) "
        "{{\n  %y, %log_sum = attention(%q, %k, %k) {{scale = 0.1, causal = true}}\n"
        "  %dq, %dk, %dv = attention_gradient(%dy, %q, %k, %k, %y, %log_sum) {{scale = 0.1, causal = true}}\n"
        "  output dq = %dq\n  output dk = %dk\n  output dv = %dv\n}}",
        type, width));
    const auto executable = planned(*graph, {}, Device::open("cuda:plan-" + card));
    std::vector<std::string> result;
    for (const NodeReport& node : executable->nodes()) {
      if (node.kernel.starts_with("cudnn.")) result.push_back(node.kernel);
    }
    for (const NodeReport& node : executable->replaced()) result.push_back(node.kernel);
    return result;
  };
  const std::vector<std::string> of_cudnn{"cudnn.attention", "cudnn.attention_gradient"};
  const std::vector<std::string> of_clusters{"expanded", "expanded"};
  EXPECT_EQ(kernels("fp16", 64), of_cudnn);
  EXPECT_EQ(kernels("bf16", 40), of_cudnn);
  EXPECT_EQ(kernels("fp16", 256), of_cudnn);
  EXPECT_EQ(kernels("fp16", 256, "a100"), of_clusters);
  EXPECT_EQ(kernels("fp16", 36), of_clusters);
  EXPECT_EQ(kernels("fp32", 64), of_clusters);
}

TEST(CudaPlan, SaysWhatDoesNotFitTheCard) {
  const models::Model model = models::create("resnet50");
  const train::StepGraph step = training_step(model, {.batch = 100'000});
  EXPECT_ERROR(compile(*step.graph, Device::open("cuda:plan-h100")), ErrorCode::out_of_memory, "TiB",
               "has 80.0 GiB", "fp32[100000, 112, 112, 64] 299.1 GiB", "recompute");
}

TEST(CudaPlan, RefusesToRunAndAnUnknownCard) {
  const Case own = text_case("graph g(input %x: fp32[4]) {\n  %y: fp32[4] = relu(%x)\n  output y = %y\n}\n");
  const auto card = Device::open("cuda:plan-h100");
  const auto executable = compile(*own.graph, card);
  EXPECT_ERROR(executable->bind(std::make_shared<Variables>(card)), ErrorCode::unsupported, "plans");
  EXPECT_ERROR(Device::open("cuda:plan-h1000"), ErrorCode::invalid_argument, "h1000", "h200");
  EXPECT_ERROR(Device::open("cuda:first"), ErrorCode::invalid_argument, "first");
}

}  // namespace
}  // namespace tessera::testing
