#include "tessera/train/summary.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::train {
namespace {

RunHistory small_history() {
  RunHistory history;
  for (int64_t step = 1; step <= 4; ++step) {
    history.samples.push_back({.step = step,
                               .epoch = 0.5 * static_cast<double>(step),
                               .loss = 1.0 / static_cast<double>(step),
                               .accuracy = 0.1,
                               .learning_rate = 0.1,
                               .images_per_second = 100});
  }
  history.epochs = {{.epoch = 1,
                     .step = 2,
                     .train_loss = 0.7,
                     .train_accuracy = 0.5,
                     .test_loss = 0.6,
                     .test_accuracy = 0.55,
                     .learning_rate = 0.1,
                     .images_per_second = 90,
                     .seconds = 3},
                    {.epoch = 2,
                     .step = 4,
                     .train_loss = 1.0 / 3,
                     .train_accuracy = 0.7,
                     .test_loss = 0.5,
                     .test_accuracy = 0.65,
                     .learning_rate = 0.1,
                     .images_per_second = 110,
                     .seconds = 2.5}};
  history.changes = {{.step = 2, .key = "train.epochs", .before = "1", .after = "2"}};
  return history;
}

TEST(Summary, HoldsTheDocumentedKeys) {
  const testing::TemporaryFolder folder;
  write_summary(folder / "summary.json", {.device = "cpu",
                                          .precision = "bf16",
                                          .network = "resnet_small",
                                          .parameters = 175258,
                                          .epochs = 5,
                                          .test_accuracy = 0.9312,
                                          .train_seconds = 201.5,
                                          .images_per_second = 1489,
                                          .versions = {{"tessera", "0.1.0"}, {"onednn", "3.2.0"}}});
  EXPECT_EQ(nlohmann::json::parse(read_text_file(folder / "summary.json")), nlohmann::json::parse(R"({
    "device": "cpu", "precision": "bf16", "network": "resnet_small", "parameters": 175258, "epochs": 5, "test_accuracy": 0.9312,
    "train_seconds": 201.5, "images_per_second": 1489.0, "versions": {"onednn": "3.2.0", "tessera": "0.1.0"}})"));
}

TEST(Summary, WritesWhatIsUnknownAsNull) {
  const auto json = nlohmann::json::parse(to_json(RunSummary{.device = "bad \xff text"}));
  EXPECT_TRUE(json["test_accuracy"].is_null());
  EXPECT_EQ(json["device"], "bad \uFFFD text");
}

TEST(Summary, NamesTheFileThatCannotBeWritten) {
  EXPECT_ERROR(write_summary("/nowhere/at/all/summary.json", {}), ErrorCode::io,
               "/nowhere/at/all/summary.json");
}

TEST(RunHistory, ComesBackExactly) {
  const RunHistory history = small_history();
  EXPECT_EQ(history_from_json(to_json(history), "history"), history);
  EXPECT_EQ(history_from_json(to_json(RunHistory{}), "history"), RunHistory{});
}

TEST(RunHistory, KeepsWhatWasNotMeasured) {
  RunHistory history;
  history.epochs.push_back({.epoch = 1});
  const RunHistory again = history_from_json(to_json(history), "history");
  EXPECT_TRUE(std::isnan(again.epochs[0].test_accuracy));
  EXPECT_EQ(again.epochs[0].epoch, 1);
}

// As they were written before a run could be resumed otherwise.
TEST(RunHistory, NeedsNoChanges) {
  EXPECT_EQ(history_from_json(R"({"samples": [], "epochs": []})", "history"), RunHistory{});
}

TEST(RunHistory, RefusesOtherText) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"samples": [{}], "epochs": []})", R"({"samples": 3, "epochs": []})",
        R"({"samples": [], "epochs": [{"epoch": "x"}]})",
        R"({"samples": [], "epochs": [], "changes": [{"step": 1}]})"}) {
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
  EXPECT_EQ(history.changes.size(), 1u);
  EXPECT_EQ(history.train_seconds(), 3.0);
  history.truncate(1);
  EXPECT_TRUE(history.changes.empty());
}

}  // namespace
}  // namespace tessera::train
