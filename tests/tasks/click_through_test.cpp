#include "tessera/tasks/click_through.h"

#include <gtest/gtest.h>

#include "tessera/data/rows.h"
#include "tessera/train/trainer.h"

#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

// It happens where two categories agree, but for the number that says the opposite where it is large.
Feeds rows(int64_t count) {
  Tensor categories(DataType::int32, {count, 2});
  Tensor numbers(DataType::fp32, {count, 1});
  Tensor labels(DataType::fp32, {count});
  const Random random(3);
  for (int64_t row = 0; row < count; ++row) {
    const auto place = static_cast<uint64_t>(row);
    const auto first = static_cast<double>(random.below(3 * place, 5));
    const auto second = random.uniform(3 * place + 1) < 0.5F ? first : std::fmod(first + 1, 5);
    const double number = random.uniform(3 * place + 2) - 0.2;
    categories.set(2 * row, first);
    categories.set(2 * row + 1, second);
    numbers.set(row, number);
    labels.set(row, (first == second) == (number < 0.6) ? 1 : 0);
  }
  return {{"categories", categories}, {"numbers", numbers}, {"labels", labels}};
}

nn::Task small_task() {
  return tasks::click_through({.entries = {5, 5}, .numbers = 1, .width = 8, .hidden = {16}});
}

train::TrainerOptions small_training() {
  return {.optimizer = optim::adam({.learning_rate = 1e-2}), .device = Device::cpu()};
}

train::Numbers measure(train::Trainer& trainer, const data::Source& source) {
  const auto evaluator = tasks::click_through_evaluator()();
  trainer.evaluate(source, *evaluator);
  return evaluator->results();
}

TEST(ClickThrough, LearnsWhatPairsOfCategoriesSay) {
  const data::HeldOut held = data::hold_out(rows(2000), 0.2);
  const data::Rows test(held.test, {.batch_size = 64, .shuffle = false, .drop_last = false});
  train::Trainer trainer(small_task(), small_training());
  EXPECT_LT(measure(trainer, test).at("auc"), 0.75);
  trainer.fit(data::Rows(held.training, {.batch_size = 50}), {.epochs = 12});
  const train::Numbers after = measure(trainer, test);
  EXPECT_GT(after.at("auc"), 0.97);
  EXPECT_LT(after.at("loss"), 0.3);
}

// The plan of a step over a table of so many rows beside a small one.
std::unique_ptr<Executable> step_over(int64_t entries, const std::shared_ptr<Device>& device) {
  const nn::Task task = tasks::click_through({.entries = {entries, 16}, .numbers = 1});
  const train::StepGraph step = train::build_training_step(
      task, {.sizes = {{"batch", 512}}, .phase = {.groups = {{.optimizer = optim::adam({})}}}});
  return compile(*step.graph, device, {});
}

// Tables of a thousand rows and of a million: the same kernels move the same bytes in the same memory.
TEST(ClickThrough, AStepCostsItsBatchHoweverLargeATableIs) {
  // The reference alone copies a table to change it.
  const std::unique_ptr<Executable> small = step_over(1000, Device::cpu());
  const std::unique_ptr<Executable> large = step_over(1'000'000, Device::cpu());
  EXPECT_EQ(large->memory_plan().peak_bytes, small->memory_plan().peak_bytes);
  EXPECT_GT(large->memory_plan().variable_bytes, 100 * small->memory_plan().variable_bytes);
  ASSERT_EQ(large->nodes().size(), small->nodes().size());
  for (size_t i = 0; i < small->nodes().size(); ++i) {
    const NodeReport& expected = small->nodes()[i];
    const NodeReport& node = large->nodes()[i];
    EXPECT_EQ(node.kernel, expected.kernel) << node.name;
    EXPECT_EQ(node.bytes, expected.bytes) << node.name;
    EXPECT_EQ(node.flops, expected.flops) << node.name;
  }
}

TEST(ClickThrough, ResumesToTheSameBits) {
  const data::Rows source(rows(400), {.batch_size = 50});
  expect_same_bits_when_resumed([] { return train::Trainer(small_task(), small_training()); }, source, 11);
}

TEST(ClickThrough, CountsPairsForTheArea) {
  const auto area = [](const std::vector<float>& said, const std::vector<float>& happened) {
    const auto count = std::ssize(said);
    const auto evaluator = tasks::click_through_evaluator()();
    // A row more, which only fills.
    data::Batch batch{.fields = {{"labels", Tensor(DataType::fp32, {count + 1})}}, .samples = count};
    Tensor probabilities = Tensor::full(DataType::fp32, {count + 1}, 0.5);
    for (int64_t i = 0; i < count; ++i) {
      batch.fields.at("labels").set(i, happened[static_cast<size_t>(i)]);
      probabilities.set(i, said[static_cast<size_t>(i)]);
    }
    evaluator->add(batch, {{"probabilities", probabilities}});
    return evaluator->results().at("auc");
  };
  EXPECT_DOUBLE_EQ(area({0.1F, 0.2F, 0.8F, 0.9F}, {0, 0, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(area({0.9F, 0.2F, 0.8F, 0.1F}, {0, 1, 0, 1}), 0);
  EXPECT_DOUBLE_EQ(area({0.5F, 0.5F, 0.5F}, {0, 1, 0}), 0.5);
  EXPECT_DOUBLE_EQ(area({0.1F, 0.4F, 0.4F, 0.8F}, {0, 0, 1, 1}), 3.5 / 4);
  EXPECT_DOUBLE_EQ(area({0.1F, 0.4F}, {0, 0}), 0.5);  // nothing to tell apart
}

TEST(ClickThrough, NeedsTables) {
  EXPECT_ERROR(tasks::click_through({}), ErrorCode::invalid_argument, "needs a table");
  EXPECT_ERROR(tasks::click_through({.entries = {3, 0}}), ErrorCode::invalid_argument, "0 entries");
}

}  // namespace
}  // namespace tessera::testing
