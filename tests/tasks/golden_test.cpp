// The losses of each task's first twenty steps, as PyTorch has them; those of language have more in
// language_golden_test.cpp.
#include <gtest/gtest.h>

#include "tessera/models/formula.h"
#include "tessera/tasks/click_through.h"
#include "tessera/tasks/gan.h"
#include "tessera/tasks/masked_language_model.h"

#include "tasks/golden_training.h"

namespace tessera::testing {
namespace {

namespace formula = models::formula;

constexpr size_t kSteps = 20;

void expect_as_in_pytorch(const GoldenTraining& training, double roundings) {
  expect_golden(training, losses_of(training), roundings);
}

TEST(Golden, GanTrainsAsInPyTorch) {
  constexpr int64_t kSize = 12;
  constexpr int64_t kBatch = 8;
  GoldenTraining training{
      .golden = read_golden("gan.json"),
      .task = tasks::gan({.image_size = kSize, .noise = 8, .width = 4, .images = {.type = DataType::fp32}}),
      .options = {.phases = tasks::gan_phases(optim::adam({.learning_rate = 2e-3, .beta1 = 0.5}))},
      .batch = kBatch};
  for (size_t step = 0; step < kSteps; ++step) {
    training.fields.push_back(
        {{"images", formula::images(numbered("gan.", step), {kBatch, kSize, kSize, 1})}});
  }
  // Ours has sums in another order, and noise and logarithms that are off by some units in the last place.
  expect_as_in_pytorch(training, 40);
}

TEST(Golden, MaskedLanguageModelTrainsAsInPyTorch) {
  constexpr int64_t kRows = 8;
  constexpr int64_t kTokens = 12;
  constexpr int64_t kVocabulary = 29;
  GoldenTraining training{
      .golden = read_golden("masked_language_model.json"),
      .task = tasks::masked_language_model({.tokens = kTokens,
                                            .vocabulary = kVocabulary,
                                            .width = 16,
                                            .heads = 2,
                                            .layers = 2,
                                            .masked = 0.25}),
      .options = {.optimizer = optim::adamw({.learning_rate = 2e-3, .weight_decay = 0.1})},
      .batch = kRows};
  for (size_t step = 0; step < kSteps; ++step) {
    training.fields.push_back(
        {{"tokens", golden_integers(numbered("masked.", step), {kRows, kTokens}, kVocabulary)}});
  }
  // Sums in another order; Adam's first steps divide by the roots of small gradients.
  expect_as_in_pytorch(training, 20);
}

// The tables' rows as torch.optim.SparseAdam updates them.
TEST(Golden, ClickThroughTrainsAsInPyTorch) {
  constexpr int64_t kBatch = 16;
  constexpr int64_t kNumbers = 4;
  const std::vector<int64_t> entries{7, 40, 3};
  GoldenTraining training{
      .golden = read_golden("click_through.json"),
      .task = tasks::click_through({.entries = entries, .numbers = kNumbers, .width = 8, .hidden = {12, 6}}),
      .options = {.optimizer = optim::adam({.learning_rate = 1e-2, .epsilon = 1e-12})},
      .batch = kBatch};
  for (size_t step = 0; step < kSteps; ++step) {
    const std::string name = numbered("click.", step);
    Tensor categories(DataType::int32, {kBatch, std::ssize(entries)});
    Tensor numbers(DataType::fp32, {kBatch, kNumbers});
    Tensor labels(DataType::fp32, {kBatch});
    for (int64_t row = 0; row < kBatch; ++row) {
      const auto place = static_cast<uint64_t>(row);
      for (int64_t table = 0; table < std::ssize(entries); ++table) {
        const std::string column = name + "." + std::to_string(table);
        const int64_t code = formula::label(column, place, entries[static_cast<size_t>(table)]);
        categories.set(row * std::ssize(entries) + table, static_cast<double>(code));
      }
      for (int64_t i = 0; i < kNumbers; ++i) {
        const float number = formula::uniform(name + ".numbers", place * kNumbers + static_cast<uint64_t>(i));
        numbers.set(row * kNumbers + i, number);
      }
      labels.set(row, static_cast<double>(formula::label(name + ".labels", place, 2)));
    }
    training.fields.push_back({{"categories", categories}, {"numbers", numbers}, {"labels", labels}});
  }
  // Sums in another order.
  expect_as_in_pytorch(training, 20);
}

}  // namespace
}  // namespace tessera::testing
