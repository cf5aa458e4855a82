// What a run leaves for tools: summary.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tessera/nn/task.h"
#include "tessera/train/history.h"

namespace tessera::report {

struct RunSummary {
  std::string device = {};     // "cpu"
  std::string precision = {};  // "fp32": what was computed in, also where the recipe left it to the device
  std::string task = {};       // "language_model"
  std::string network = {};    // "resnet_small"
  int64_t parameters = 0;
  int64_t epochs = 0;
  // The last results of each evaluation: {"test", {{"loss", 0.23}}} is the key "test_loss".
  std::map<std::string, train::Numbers> evaluations = {};
  double train_seconds = 0;
  double samples_per_second = 0;
  std::map<std::string, std::string> versions = {};  // {"tessera": "0.1.0", "onednn": "3.2.0"}
};

// A number as that metric is read: "93.12 %", "0.2345"; "–" for what is not finite.
std::string format_metric(const nn::Metric& metric, double value);
// "auc 0.7747, loss 0.2345", in the order of the metrics.
std::string describe_results(const std::vector<nn::Metric>& metrics, const train::Numbers& results);

// Pretty-printed, with the members' names as keys; NaN becomes null.
std::string to_json(const RunSummary& summary);

// Writes it complete or not at all; throws Error(io).
void write_summary(const std::filesystem::path& path, const RunSummary& summary);

}  // namespace tessera::report
