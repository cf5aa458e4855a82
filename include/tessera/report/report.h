// report.html: one file that shows a run in any browser, without a network and without anything beside it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/nn/task.h"
#include "tessera/report/machine.h"
#include "tessera/report/summary.h"
#include "tessera/train/evaluator.h"

namespace tessera::report {

struct Report {
  std::string data = {};  // what it was trained on, "Fashion-MNIST"; may be empty
  std::string date = {};  // when it ended, "2026-03-14 15:09"; may be empty
  RunSummary summary = {};
  train::RunHistory history = {};
  MachineInfo machine = {};
  std::string recipe = {};                          // TOML, as to_toml() prints it
  std::vector<nn::Metric> metrics = {};             // in the order of showing them
  std::string samples = "samples";                  // what a row of a batch is, in the plural
  std::vector<train::ReportSection> sections = {};  // what the evaluators found
};

// The page, UTF-8. All text is escaped, but what the sections hold. Parts without data are left out.
std::string render_report(const Report& report);

// All of it as JSON and back, for a report that another process completes. report_from_json throws
// Error(invalid_file) that begins with `name`.
std::string to_json(const Report& report);
Report report_from_json(std::string_view text, std::string_view name);

// Sections alone, as a page like a report's.
std::string render_sections(const std::string& title, const std::vector<train::ReportSection>& sections);

// render_report() into a file, complete or not at all. Also throws Error(io).
void write_report(const std::filesystem::path& path, const Report& report);

}  // namespace tessera::report
