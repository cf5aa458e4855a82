// What ranks exchange in a step: gradients in 16 bits where that is asked for.
#include <unordered_set>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "train/rank_training.h"

namespace tessera::testing {
namespace {

// Of 36 x 512 weights, which are worth 16 bits, and others that are not.
nn::Task wide_perceptron() {
  const models::Model network =
      models::mlp({.classes = kTinyClasses, .image_size = kTinySize, .channels = 1, .hidden = {512}});
  return tasks::image_classification(network, {.images = tiny_images()});
}

OptionChange reduced_as(DataType type, Precision precision, bool shards = false) {
  return [=](train::TrainerOptions& options, train::FitOptions&) {
    options.reduce_type = type;
    options.precision = precision;
    options.shard_optimizer = shards;
  };
}

train::StepGraph step_of(const nn::Task& task, const train::StepOptions& options) {
  train::StepGraph step = train::build_training_step(task, options);
  verify(*step.graph);
  return step;
}

std::vector<const Node*> collectives_of(const train::StepGraph& step) {
  std::vector<const Node*> nodes;
  for (const auto& node : step.graph->nodes()) {
    if (node->schema().operator_class == OperatorClass::communication) nodes.push_back(node.get());
  }
  return nodes;
}

// Whether one waits for the other.
bool waits_for(const Node& reader, const Node& node) {
  std::vector<const Node*> left = {&reader};
  std::unordered_set<const Node*> seen;
  while (!left.empty()) {
    const Node* next = left.back();
    left.pop_back();
    for (const Value* input : next->inputs()) {
      const Node* producer = input->producer();
      if (producer == &node) return true;
      if (producer != nullptr && seen.insert(producer).second) left.push_back(producer);
    }
  }
  return false;
}

// One exchange is of gradients, which are sums of each rank; one of objective, metrics and running
// statistics, of which no gradient is made.
TEST(Ranks, WaitForEachOtherAfterTheirGradientsAlone) {
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    for (const int64_t accumulate : {1, 2}) {
      const train::StepGraph step =
          step_of(tiny_resnet(),
                  {.precision = precision, .accumulate = accumulate, .clip_norm = 1, .ranks = {.count = 2}});
      const std::vector<const Node*> collectives = collectives_of(step);
      ASSERT_EQ(collectives.size(), 2U) << to_string(precision) << ", " << accumulate;
      EXPECT_FALSE(waits_for(*collectives[0], *collectives[1]) || waits_for(*collectives[1], *collectives[0]))
          << to_string(precision) << ", " << accumulate;
    }
  }
}

TEST(ReduceType, IsOfLargeGradientsAlone) {
  const train::StepGraph step =
      step_of(wide_perceptron(), {.ranks = {.count = 2}, .reduce_type = DataType::bf16});
  const std::vector<const Node*> collectives = collectives_of(step);
  ASSERT_EQ(collectives.size(), 2U);
  for (const Value* input : collectives.back()->inputs()) {
    const bool is_large = input->type().element_count() >= (64 << 10) / 4;
    EXPECT_EQ(input->data_type(), is_large ? DataType::bf16 : DataType::fp32) << to_string(input->type());
  }
}

TEST(ReduceType, ChangesNothingForOneRank) {
  const auto print_of = [](DataType type) {
    return print(*step_of(wide_perceptron(), {.reduce_type = type}).graph);
  };
  EXPECT_EQ(print_of(DataType::bf16), print_of(DataType::fp32));
}

// A gradient is rounded to 8 bits, in fp16 to 11; in these twelve steps that is worth a hundredth of what
// they change, and a wrong factor more than a half.
TEST(ReduceType, TrainsAsFp32Does) {
  for (const auto& [type, precision] :
       {std::pair{DataType::bf16, Precision::fp32}, std::pair{DataType::bf16, Precision::bf16},
        std::pair{DataType::fp16, Precision::fp16}}) {
    for (const bool shards : {false, true}) {
      SCOPED_TRACE(
          fmt::format("{} in {}{}", to_string(type), to_string(precision), shards ? ", shards" : ""));
      const std::vector<Trained> trained = train_on(2, wide_perceptron, reduced_as(type, precision, shards));
      EXPECT_TRUE(different_tensors(trained[0].state.tensors, trained[1].state.tensors).empty());
      expect_close(state_of(2, wide_perceptron, reduced_as(DataType::fp32, precision, shards)),
                   trained.front().state, 1e-2);
    }
  }
}

TEST(ReduceType, GoesWithDelayAndAccumulation) {
  const auto trained = [](DataType type, int64_t delay, int64_t accumulate) {
    return state_of(2, wide_perceptron, [=](train::TrainerOptions& options, train::FitOptions&) {
      options.reduce_type = type;
      options.gradient_delay = delay;
      options.accumulate = accumulate;
    });
  };
  expect_close(trained(DataType::fp32, 1, 1), trained(DataType::bf16, 1, 1), 1e-2);
  expect_close(trained(DataType::fp32, 0, 3), trained(DataType::bf16, 0, 3), 1e-2);
}

TEST(ReduceType, IsRefusedWhereGradientsWouldBeLost) {
  EXPECT_ERROR(train::build_training_step(tiny_linear(), {.reduce_type = DataType::fp16}),
               ErrorCode::invalid_argument, "fp16", "loss scale");
  EXPECT_ERROR(train::build_training_step(tiny_linear(), {.reduce_type = DataType::int8}),
               ErrorCode::invalid_argument, "int8", "fp32, bf16 or fp16");
}

}  // namespace
}  // namespace tessera::testing
