#include "tessera/report/summary.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace tessera::report {
namespace {

TEST(Summary, HoldsTheDocumentedKeys) {
  const testing::TemporaryFolder folder;
  write_summary(folder / "summary.json", {.device = "cpu",
                                          .precision = "bf16",
                                          .task = "image_classification",
                                          .network = "resnet_small",
                                          .parameters = 175258,
                                          .epochs = 5,
                                          .evaluations = {{"test", {{"accuracy", 0.9312}, {"loss", 0.25}}}},
                                          .train_seconds = 201.5,
                                          .samples_per_second = 1489,
                                          .versions = {{"tessera", "0.1.0"}, {"onednn", "3.2.0"}}});
  EXPECT_EQ(nlohmann::json::parse(read_text_file(folder / "summary.json")), nlohmann::json::parse(R"({
    "device": "cpu", "precision": "bf16", "task": "image_classification", "network": "resnet_small",
    "parameters": 175258, "epochs": 5, "test_accuracy": 0.9312, "test_loss": 0.25, "train_seconds": 201.5,
    "samples_per_second": 1489.0, "versions": {"onednn": "3.2.0", "tessera": "0.1.0"}})"));
}

TEST(Summary, WritesWhatIsUnknownAsNull) {
  const auto json = nlohmann::json::parse(to_json(
      RunSummary{.device = "bad \xff text", .evaluations = {{"test", {{"accuracy", train::kNotMeasured}}}}}));
  EXPECT_TRUE(json["test_accuracy"].is_null());
  EXPECT_EQ(json["device"], "bad \uFFFD text");
}

TEST(Summary, NamesTheFileThatCannotBeWritten) {
  EXPECT_ERROR(write_summary("/nowhere/at/all/summary.json", {}), ErrorCode::io,
               "/nowhere/at/all/summary.json");
}

TEST(Summary, ReadsNumbersAsTheirMetricsSay) {
  const std::vector<nn::Metric> metrics{
      {.name = "accuracy", .percent = true}, {.name = "loss"}, {.name = "other"}};
  EXPECT_EQ(describe_results(metrics, {{"loss", 0.23456}, {"accuracy", 0.93124}}),
            "accuracy 93.12 %, loss 0.2346");
  EXPECT_EQ(format_metric(metrics[0], train::kNotMeasured), "–");
}

}  // namespace
}  // namespace tessera::report
