// Plans for a card that is not there.
#include <algorithm>
#include <cstdlib>

#include "tessera/models/model.h"
#include "tessera/train/step.h"

#include "device_cuda/cuda_case.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

TEST(CudaPlan, OfAResnetStepHoldsNoTransposeAndKnowsItsMemory) {
  const models::Model model = models::create("resnet50", models::describe("resnet50").defaults);
  const train::StepGraph step = train::build_training_step(model, {.batch = 8, .precision = Precision::fp16});
  CompileOptions options;
  options.passes.precision = Precision::fp16;
  const auto executable = compile(*step.graph, Device::open("cuda:plan-h100"), options);
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

TEST(CudaPlan, RecomputesActivationsOnlyWhereItIsAskedTo) {
  const models::Model model = models::create("resnet18", models::describe("resnet18").defaults);
  const train::StepGraph step = train::build_training_step(model, {.batch = 8});
  const auto recomputed = [&](std::optional<bool> recompute) {
    CompileOptions options;
    options.passes.recompute = recompute;
    const auto executable = compile(*step.graph, Device::open("cuda:plan-h100"), options);
    const auto& nodes = executable->nodes();
    return std::count_if(nodes.begin(), nodes.end(), [](const NodeReport& node) {
      return node.name.find(".recomputed/") != std::string::npos;
    });
  };
  EXPECT_EQ(recomputed(std::nullopt), 0);
  EXPECT_EQ(recomputed(false), 0);
  EXPECT_GT(recomputed(true), 0);
}

TEST(CudaPlan, NeedsLessMemoryWhereItRecomputes) {
  const models::Model model = models::create("resnet50", models::describe("resnet50").defaults);
  const train::StepGraph step =
      train::build_training_step(model, {.batch = 256, .precision = Precision::fp16});
  for (const bool deterministic : {true, false}) {
    const auto peak = [&](bool recompute) {
      CompileOptions options;
      options.passes.precision = Precision::fp16;
      options.passes.deterministic = deterministic;
      options.passes.recompute = recompute;
      return compile(*step.graph, Device::open("cuda:plan-h100"), options)->memory_plan().peak_bytes;
    };
    const int64_t kept = peak(false);
    const int64_t recomputed = peak(true);
    EXPECT_LT(recomputed, 0.95 * static_cast<double>(kept)) << kept;
  }
}

TEST(CudaPlan, AddsStatisticsInConvolutionsOnlyWhereRunsMayDiffer) {
  const models::Model model = models::create("resnet50", models::describe("resnet50").defaults);
  const train::StepGraph step =
      train::build_training_step(model, {.batch = 256, .precision = Precision::fp16});
  const auto count = [&](bool deterministic) {
    CompileOptions options;
    options.passes.precision = Precision::fp16;
    options.passes.deterministic = deterministic;
    const auto executable = compile(*step.graph, Device::open("cuda:plan-h100"), options);
    return std::count_if(executable->nodes().begin(), executable->nodes().end(), [](const NodeReport& node) {
      return node.operator_name == "fused:convolution_statistics";
    });
  };
  EXPECT_EQ(count(true), 0);
  // The stem, all of layer 1, the wide ones of layers 2 and 3.
  EXPECT_EQ(count(false), 19);
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

TEST(CudaPlan, NormalisesThePooledStemInOneStepEachWay) {
  const models::Model model = models::create("resnet50", models::describe("resnet50").defaults);
  const train::StepGraph step =
      train::build_training_step(model, {.batch = 256, .precision = Precision::fp16});
  for (const bool deterministic : {true, false}) {
    CompileOptions options;
    options.passes.precision = Precision::fp16;
    options.passes.deterministic = deterministic;
    const auto executable = compile(*step.graph, Device::open("cuda:plan-h100"), options);
    for (const char* kind : {"batch_norm_max_pool", "max_pool_batch_norm_gradient"}) {
      const auto& nodes = executable->nodes();
      const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const NodeReport& node) {
        return node.operator_name == std::string("fused:") + kind;
      });
      ASSERT_NE(found, nodes.end()) << kind;
      EXPECT_EQ(found->kernel, std::string("generated.") + kind);
    }
    const std::vector<std::string> expected{deterministic ? "convolution" : "convolution_statistics",
                                            "max_pool_batch_norm_gradient"};
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
  const models::Model model = models::create("resnet50", models::describe("resnet50").defaults);
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    const auto count = [&](bool halting) {
      CompileOptions options;
      options.passes.precision = precision;
      const train::StepGraph step = train::build_training_step(
          model, {.batch = 64, .precision = precision, .clip_norm = 1, .halting = halting});
      return compile(*step.graph, Device::open("cuda:plan-h100"), options)->nodes().size();
    };
    EXPECT_LE(count(true), count(false) + 1) << to_string(precision);
  }
}

TEST(CudaPlan, SaysWhatDoesNotFitTheCard) {
  const models::Model model = models::create("resnet50", models::describe("resnet50").defaults);
  const train::StepGraph step = train::build_training_step(model, {.batch = 100'000});
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
