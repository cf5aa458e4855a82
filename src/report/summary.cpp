#include "tessera/report/summary.h"

#include <cmath>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"

namespace tessera::report {

std::string format_metric(const nn::Metric& metric, double value) {
  if (!std::isfinite(value)) return "–";
  return metric.percent ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4f}", value);
}

std::string describe_results(const std::vector<nn::Metric>& metrics, const train::Numbers& results) {
  std::vector<std::string> parts;
  for (const nn::Metric& metric : metrics) {
    const auto found = results.find(metric.name);
    if (found != results.end()) parts.push_back(metric.name + " " + format_metric(metric, found->second));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string to_json(const RunSummary& summary) {
  nlohmann::ordered_json json{
      {"device", summary.device},   {"precision", summary.precision},   {"task", summary.task},
      {"network", summary.network}, {"parameters", summary.parameters}, {"epochs", summary.epochs}};
  for (const auto& [evaluation, results] : summary.evaluations) {
    for (const auto& [metric, result] : results) json[fmt::format("{}_{}", evaluation, metric)] = result;
  }
  json["train_seconds"] = summary.train_seconds;
  json["samples_per_second"] = summary.samples_per_second;
  json["versions"] = summary.versions;
  // Names need not be UTF-8; such bytes become U+FFFD.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void write_summary(const std::filesystem::path& path, const RunSummary& summary) {
  write_file(path, to_json(summary));
}

}  // namespace tessera::report
