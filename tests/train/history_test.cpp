#include "tessera/train/history.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera::train {
namespace {

RunHistory small_history() {
  RunHistory history;
  for (int64_t step = 1; step <= 4; ++step) {
    history.samples.push_back({.step = step,
                               .epoch = 0.5 * static_cast<double>(step),
                               .measures = {{"loss", 1.0 / static_cast<double>(step)}, {"accuracy", 0.1}},
                               .learning_rate = 0.1,
                               .samples_per_second = 100});
  }
  history.epochs = {{.epoch = 1,
                     .step = 2,
                     .measures = {{"loss", 0.7}, {"accuracy", 0.5}},
                     .learning_rate = 0.1,
                     .samples_per_second = 90,
                     .seconds = 3},
                    {.epoch = 2,
                     .step = 4,
                     .measures = {{"loss", 1.0 / 3}, {"accuracy", 0.7}},
                     .learning_rate = 0.1,
                     .samples_per_second = 110,
                     .seconds = 2.5}};
  history.evaluations = {
      {.name = "test", .step = 2, .epoch = 1, .results = {{"loss", 0.6}, {"accuracy", 0.55}}},
      {.name = "test", .step = 4, .epoch = 2, .results = {{"loss", 0.5}, {"accuracy", 0.65}}}};
  history.changes = {{.step = 2, .key = "train.epochs", .before = "1", .after = "2"}};
  return history;
}

TEST(RunHistory, ComesBackExactly) {
  const RunHistory history = small_history();
  EXPECT_EQ(history_from_json(to_json(history), "history"), history);
  EXPECT_EQ(history_from_json(to_json(RunHistory{}), "history"), RunHistory{});
}

TEST(RunHistory, KeepsWhatWasNotMeasured) {
  RunHistory history;
  history.epochs.push_back({.epoch = 1, .measures = {{"loss", kNotMeasured}}});
  const RunHistory again = history_from_json(to_json(history), "history");
  EXPECT_TRUE(std::isnan(again.epochs[0].measures.at("loss")));
  EXPECT_EQ(again.epochs[0].epoch, 1);
}

// As they were written before a run could be resumed otherwise.
TEST(RunHistory, NeedsNoChanges) {
  EXPECT_EQ(history_from_json(R"({"samples": [], "epochs": []})", "history"), RunHistory{});
}

// As it was while every network was a classifier.
TEST(RunHistory, ReadsItsFirstForm) {
  const RunHistory history = history_from_json(
      R"({"samples": [{"step": 1, "epoch": 0.5, "loss": 1.5, "accuracy": 0.25, "learning_rate": 0.1,
                       "images_per_second": 7}],
          "epochs": [{"epoch": 1, "step": 2, "train_loss": 0.5, "train_accuracy": 0.75, "test_loss": null,
                      "test_accuracy": 0.5, "learning_rate": 0.1, "images_per_second": 100, "seconds": 1}]})",
      "history");
  const RunHistory expected{
      .samples = {{.step = 1,
                   .epoch = 0.5,
                   .measures = {{"loss", 1.5}, {"accuracy", 0.25}},
                   .learning_rate = 0.1,
                   .samples_per_second = 7}},
      .epochs = {{.epoch = 1,
                  .step = 2,
                  .measures = {{"loss", 0.5}, {"accuracy", 0.75}},
                  .learning_rate = 0.1,
                  .samples_per_second = 100,
                  .seconds = 1}},
      .evaluations = {{.name = "test", .step = 2, .epoch = 1, .results = {{"accuracy", 0.5}}}}};
  EXPECT_EQ(history, expected);
}

TEST(RunHistory, RefusesOtherText) {
  for (
      const char* text :
      {"", "{", "[]", "{}", R"({"samples": [{}], "epochs": []})", R"({"samples": 3, "epochs": []})",
       R"({"samples": [], "epochs": [{"epoch": "x"}]})",
       R"({"samples": [], "epochs": [], "changes": [{"step": 1}]})",
       R"({"samples": [], "epochs": [], "evaluations": [{"name": "test"}]})",
       R"({"samples": [{"step": 1, "epoch": 1, "measures": [3], "learning_rate": 1, "samples_per_second": 1}], "epochs": []})"}) {
    EXPECT_ERROR(history_from_json(text, "last.json"), ErrorCode::invalid_file,
                 "last.json: not a training history");
  }
}

TEST(RunHistory, ForgetsWhatAResumedRunRepeats) {
  RunHistory history = small_history();
  EXPECT_EQ(history.train_seconds(), 5.5);
  history.truncate(3);
  EXPECT_EQ(history.samples.size(), 3u);
  EXPECT_EQ(history.epochs.size(), 1u);
  EXPECT_EQ(history.evaluations.size(), 1u);
  EXPECT_EQ(history.changes.size(), 1u);
  EXPECT_EQ(history.train_seconds(), 3.0);
  history.truncate(1);
  EXPECT_TRUE(history.changes.empty());
}

}  // namespace
}  // namespace tessera::train
