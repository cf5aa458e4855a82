#include "tessera/report/report.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/report/progress.h"
#include "tessera/report/sections.h"

#include "report/report_assets.h"
#include "report/report_chart.h"
#include "report/report_parts.h"

namespace tessera::report {
namespace {

// Nothing may be fetched, whatever the page holds.
constexpr const char* kHead =
    R"html(<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
)html";

// Four tiles, one of them lit.
constexpr const char* kMark =
    R"html(<svg viewBox="0 0 20 20" aria-hidden="true"><g fill="currentColor"><rect width="9" height="9" rx="2"/>)html"
    R"html(<rect x="11" width="9" height="9" rx="2"/><rect y="11" width="9" height="9" rx="2"/></g>)html"
    R"html(<rect x="11" y="11" width="9" height="9" rx="2" fill="var(--test)"/></svg>)html";

std::string tile(const std::string& name, const std::string& value, const std::string& note,
                 bool main = false) {
  return fmt::format(R"(<div class="card tile{}"><dt>{}</dt><dd>{}</dd><p>{}</p></div>)", main ? " main" : "",
                     escape_html(name), value, escape_html(note));
}

std::string with_unit(const std::string& value, const std::string& unit) {
  return fmt::format("{}<small> {}</small>", value, unit);
}

// The best evaluation so far by a metric: "best 93.12 %, epoch 5".
std::string best_evaluation(const Report& report, const std::string& evaluation, const nn::Metric& metric) {
  const train::EvaluationRow* best = nullptr;
  const auto value = [&](const train::EvaluationRow& row) { return row.results.at(metric.name); };
  for (const train::EvaluationRow& row : report.history.evaluations) {
    if (row.name != evaluation || !row.results.contains(metric.name) || !std::isfinite(value(row))) continue;
    const bool better =
        best == nullptr || (metric.larger_is_better ? value(row) > value(*best) : value(row) < value(*best));
    if (better) best = &row;
  }
  return best == nullptr
             ? ""
             : fmt::format("best {}, epoch {:g}", format_metric(metric, value(*best)), best->epoch);
}

// The first metric of each evaluation.
std::string evaluation_tiles(const Report& report) {
  std::string html;
  for (const auto& [evaluation, results] : report.summary.evaluations) {
    for (const nn::Metric& metric : report.metrics) {
      const auto result = results.find(metric.name);
      if (result == results.end() || !std::isfinite(result->second)) continue;
      const std::string value = metric.percent ? with_unit(fmt::format("{:.2f}", 100 * result->second), "%")
                                               : fmt::format("{:.4f}", result->second);
      html += tile(heading(evaluation + " " + metric.name), value,
                   best_evaluation(report, evaluation, metric), true);
      break;
    }
  }
  return html;
}

std::string tiles(const Report& report) {
  const RunSummary& summary = report.summary;
  std::string html = "<dl class=\"tiles\">";
  html += evaluation_tiles(report);
  html += tile("Training time", format_duration(summary.train_seconds),
               fmt::format("{} epoch{}", summary.epochs, summary.epochs == 1 ? "" : "s"));
  html += tile(
      "Throughput",
      with_unit(group_digits(std::llround(summary.samples_per_second)), escape_html(report.samples) + "/s"),
      "while training");
  html += tile("Parameters", group_digits(summary.parameters), summary.network);
  html +=
      tile("Device", escape_html(summary.device),
           fmt::format("{}, {} usable cores", escape_html(summary.precision), report.machine.usable_cores));
  return html + "</dl>";
}

std::string machine_part(const Report& report) {
  const MachineInfo& machine = report.machine;
  std::string html = "<dl class=\"card facts\">";
  const auto fact = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", escape_html(name), escape_html(value));
    }
  };
  fact("Processor", machine.processor);
  fact("Cores", fmt::format("{} ({} hardware threads, {} usable)", machine.physical_cores,
                            machine.logical_cores, machine.usable_cores));
  if (machine.memory_bytes > 0) fact("Memory", format_bytes(static_cast<double>(machine.memory_bytes)));
  fact("Operating system", machine.operating_system);
  fact("Architecture", machine.architecture);
  fact("Compiler", machine.compiler);
  for (const auto& [name, version] : report.summary.versions) fact(name, version);
  return html + "</dl>";
}

// What a resumed run had otherwise before.
std::string changes_part(const train::RunHistory& history) {
  std::string html;
  for (const train::SettingChange& change : history.changes) {
    html += fmt::format("<p class=\"note\">From step {} on {} is {}; before it was {}.</p>", change.step,
                        escape_html(change.key), escape_html(change.after), escape_html(change.before));
  }
  return html;
}

// From the first line to the heading.
std::string page_begin(const std::string& title, const std::string& brand, const std::string& date) {
  std::string html =
      fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{}<title>{} · Tessera</title>\n", kHead,
                  escape_html(title));
  html += fmt::format("<style>{}</style>\n</head>\n<body>\n<main>\n<header>", kReportStyle);
  html += fmt::format("<div class=\"brand\">{}{}{}</div>", kMark, brand,
                      date.empty() ? "" : fmt::format("<time>{}</time>", escape_html(date)));
  return html + fmt::format("<h1>{}</h1></header>\n", escape_html(title));
}

std::string page_end(const std::string& version) {
  return fmt::format(
      "<footer>Made by Tessera {}. This page needs no network.</footer>\n</main>\n<script>{}</script>\n"
      "</body>\n</html>\n",
      escape_html(version), kReportScript);
}

std::string sections_part(const std::vector<train::ReportSection>& sections) {
  std::string html;
  for (const train::ReportSection& section : sections)
    html += fmt::format("<section><h2>{}</h2>{}</section>\n", escape_html(section.title), section.html);
  return html;
}

}  // namespace

std::string group_digits(int64_t value) {
  std::string digits = fmt::format("{}", value);
  const size_t sign = value < 0 ? 1 : 0;
  for (size_t place = digits.size(); place > sign + 3; place -= 3) digits.insert(place - 3, ",");
  return digits;
}

std::string heading(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string render_report(const Report& report) {
  const RunSummary& summary = report.summary;
  const std::string title = summary.network + (report.data.empty() ? "" : " on " + report.data);
  std::string html = page_begin(title, "Tessera report", report.date) + tiles(report) + "\n";
  html += curves_part(report);
  html += sections_part(report.sections);
  html += epochs_part(report);
  html += fmt::format("<div class=\"pair\">\n<section><h2>Machine</h2>{}</section>\n", machine_part(report));
  if (!report.recipe.empty()) {
    html += fmt::format("<section><h2>Recipe</h2>{}<pre class=\"card\">{}</pre></section>\n",
                        changes_part(report.history), escape_html(report.recipe));
  }
  return html + "</div>\n" + page_end(report.machine.tessera_version);
}

std::string render_sections(const std::string& title, const std::vector<train::ReportSection>& sections) {
  return page_begin(title, "Tessera", "") + sections_part(sections) +
         page_end(read_machine().tessera_version);
}

void write_report(const std::filesystem::path& path, const Report& report) {
  write_file(path, render_report(report));
}

}  // namespace tessera::report
