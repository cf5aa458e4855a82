// Plans for a card that is not there.
#include <algorithm>

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
      EXPECT_EQ(node.kernel, "cudnn.convolution") << node.name;
      ++convolutions;
    }
  }
  EXPECT_EQ(convolutions, 53 * 3 - 1);  // the first has no data gradient
  EXPECT_GT(executable->memory_plan().peak_bytes, 0);
}

// Image and weights are rearranged by one kernel each, the weights' gradient by another.
TEST(CudaPlan, RunsTheFirstConvolutionOnBlocksOfPixels) {
  for (const auto& [name, channels] : std::map<std::string, int64_t>{{"resnet50", 16}, {"alexnet", 48}}) {
    const models::Model model = models::create(name, models::describe(name).defaults);
    const train::StepGraph step =
        train::build_training_step(model, {.batch = 8, .precision = Precision::fp16});
    CompileOptions options;
    options.passes.precision = Precision::fp16;
    const auto executable = compile(*step.graph, Device::open("cuda:plan-h100"), options);
    std::vector<const Value*> images;
    for (const auto& node : executable->graph().nodes()) {
      const bool fused = node->operator_name() == "fused";
      if (!node->operator_name().starts_with("convolution") &&
          !(fused && node->attributes().text("kind") == "convolution")) {
        continue;
      }
      EXPECT_GE(node->input(0)->shape().back().value(), 16) << node->name();
      const Node* producer = node->input(0)->producer();
      if (producer != nullptr && producer->operator_name() == "fused" &&
          producer->attributes().text("kind") == "space_to_depth") {
        images.push_back(node->input(0));
      }
    }
    ASSERT_EQ(images.size(), 2) << name;
    EXPECT_EQ(images[0], images[1]) << "forward and gradient share the rearranged image";
    EXPECT_EQ(images[0]->shape().back().value(), channels);
    EXPECT_EQ(images[0]->producer()->input(0), executable->graph().find_input("images"));
    size_t into_blocks = 0;
    size_t back = 0;
    for (const NodeReport& node : executable->nodes()) {
      into_blocks += node.kernel == "generated.space_to_depth" ? 1 : 0;
      back += node.kernel == "generated.depth_to_space" ? 1 : 0;
      for (const char* movement : {"pad", "slice", "transpose"}) {
        EXPECT_NE(node.operator_name, movement) << node.name;
      }
    }
    EXPECT_EQ(into_blocks, 2) << name;
    EXPECT_EQ(back, 1) << name;
  }
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
