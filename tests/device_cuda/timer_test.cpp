// The GPU's own times of runs and of nodes.
#include "tessera/models/registry.h"
#include "tessera/train/checkpoint.h"

#include "device_cuda/cuda_case.h"
#include "support/random_tensor.h"
#include "support/training_step.h"

namespace tessera::testing {
namespace {

TEST(CudaTimer, MarksRecordedRunsAndTheirNodes) {
  TESSERA_NEEDS_GPU();
  const models::Model model = models::create("resnet18", {.classes = 10, .image_size = 64});
  const train::StepGraph step = training_step(model, {.batch = 16});
  const auto device = gpu_or_null();
  const auto executable = compile(*step.graph, device);
  auto variables = std::make_shared<Variables>(device);
  train::initialize_variables(*variables, step.variables, 1);
  executable->bind(variables);
  executable->stage({{"images", random_tensor(DataType::fp32, model.input_type(16).static_shape(), -1, 1, 1)},
                     {"labels", Tensor(DataType::int32, {16})},
                     {"learning_rate", Tensor::scalar(DataType::fp32, 0)}});

  const auto runs = executable->trace({}, 5);
  double shortest = 1e30;
  for (size_t i = 1; i < runs.size(); ++i) {
    EXPECT_TRUE(runs[i].recorded);
    ASSERT_TRUE(runs[i].device.has_value());
    const double microseconds = runs[i].device->microseconds();
    EXPECT_GT(microseconds, 0);
    EXPECT_LE(microseconds, TimeSpan({runs[i].inputs.begin, runs[i].outputs.end}).microseconds());
    shortest = std::min(shortest, microseconds);
  }

  const NodeTimes times = executable->profile({});
  EXPECT_TRUE(times.recorded);
  double sum = 0;
  for (size_t i = 0; i < times.nodes.size(); ++i) {
    EXPECT_GE(times.nodes[i].microseconds(), 0) << executable->nodes()[i].name;
    sum += times.nodes[i].microseconds();
  }
  // Marks cost a little, and other things may run beside the test.
  EXPECT_GT(sum, 0.5 * shortest);
  EXPECT_LT(sum, 5 * shortest);
}

}  // namespace
}  // namespace tessera::testing
