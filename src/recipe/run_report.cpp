#include "recipe/run_report.h"

#include <ctime>

#include <fmt/chrono.h>

#include "tessera/report/machine.h"
#include "tessera/report/sections.h"

namespace tessera::recipe {

report::RunSummary summarize(const train::Trainer& trainer, const train::FitResult& result) {
  const DeviceDescription device = trainer.device().description();
  report::RunSummary summary{.device = device.name,
                             .precision = std::string(to_string(trainer.precision())),
                             .task = trainer.task().name,
                             .network = trainer.task().network,
                             .parameters = trainer.parameter_count(),
                             .epochs = result.position.epoch,
                             .train_seconds = result.history.train_seconds(),
                             .versions = device.versions};
  for (const train::EvaluationRow& row : result.history.evaluations)
    summary.evaluations[row.name] = row.results;
  double samples = 0;
  for (const train::EpochRow& row : result.history.epochs) samples += row.samples_per_second * row.seconds;
  if (summary.train_seconds > 0) summary.samples_per_second = samples / summary.train_seconds;
  summary.versions["tessera"] = report::read_machine().tessera_version;
  return summary;
}

std::vector<std::string> remarks_on(const data::Source& training, const data::Source* test) {
  std::vector<std::string> remarks;
  for (const std::string& remark : training.remarks()) remarks.push_back("Training: " + remark);
  if (test == nullptr) return remarks;
  for (const std::string& remark : test->remarks()) remarks.push_back("Test: " + remark);
  return remarks;
}

report::Report make_report(const Recipe& recipe, const train::Workload& workload,
                           const report::RunSummary& summary, const train::FitResult& result,
                           const std::vector<std::string>& remarks) {
  report::Report report{.data = workload.data,
                        .date = fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr))),
                        .summary = summary,
                        .history = result.history,
                        .machine = report::read_machine(),
                        .recipe = to_toml(recipe),
                        .metrics = workload.task.metrics,
                        .samples = workload.task.samples};
  for (const auto& evaluation : result.evaluations) {
    if (evaluation == nullptr) continue;
    for (train::ReportSection& section : evaluation->sections())
      report.sections.push_back(std::move(section));
  }
  if (!remarks.empty()) report.sections.push_back(report::remarks_section(remarks));
  return report;
}

}  // namespace tessera::recipe
