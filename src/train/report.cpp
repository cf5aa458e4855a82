#include "tessera/train/report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/train/progress.h"

#include "report_assets.h"
#include "report_chart.h"
#include "report_parts.h"

namespace tessera::train {
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

std::string tile(std::string_view name, const std::string& value, const std::string& note,
                 bool main = false) {
  return fmt::format(R"(<div class="card tile{}"><dt>{}</dt><dd>{}</dd><p>{}</p></div>)", main ? " main" : "",
                     name, value, escape_html(note));
}

std::string with_unit(const std::string& value, const char* unit) {
  return fmt::format("{}<small> {}</small>", value, unit);
}

std::string best_epoch(const RunHistory& history) {
  const EpochRow* best = nullptr;
  for (const EpochRow& row : history.epochs) {
    if (std::isfinite(row.test_accuracy) && (best == nullptr || row.test_accuracy > best->test_accuracy))
      best = &row;
  }
  return best == nullptr ? ""
                         : fmt::format("best {:.2f} %, epoch {}", 100 * best->test_accuracy, best->epoch);
}

std::string tiles(const Report& report) {
  const RunSummary& summary = report.summary;
  std::string html = "<dl class=\"tiles\">";
  if (std::isfinite(summary.test_accuracy)) {
    html += tile("Test accuracy", with_unit(fmt::format("{:.2f}", 100 * summary.test_accuracy), "%"),
                 best_epoch(report.history), true);
  }
  html += tile("Training time", format_duration(summary.train_seconds),
               fmt::format("{} epoch{}", summary.epochs, summary.epochs == 1 ? "" : "s"));
  html += tile("Throughput", with_unit(group_digits(std::llround(summary.images_per_second)), "images/s"),
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
std::string changes_part(const RunHistory& history) {
  std::string html;
  for (const SettingChange& change : history.changes) {
    html += fmt::format("<p class=\"note\">From step {} on {} is {}; before it was {}.</p>", change.step,
                        escape_html(change.key), escape_html(change.after), escape_html(change.before));
  }
  return html;
}

void check(const Report& report) {
  for (const auto& [pair, images] : report.confusion) {
    require(pair.first >= 0 && pair.second >= 0, ErrorCode::invalid_argument,
            "{} test images are of class {} and taken for {}: classes are numbered from 0", images,
            pair.first, pair.second);
  }
}

}  // namespace

std::string group_digits(int64_t value) {
  std::string digits = fmt::format("{}", value);
  const size_t sign = value < 0 ? 1 : 0;
  for (size_t place = digits.size(); place > sign + 3; place -= 3) digits.insert(place - 3, ",");
  return digits;
}

std::string render_report(const Report& report) {
  check(report);
  const RunSummary& summary = report.summary;
  const std::string title = summary.network + (report.data.empty() ? "" : " on " + report.data);
  std::string html =
      fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{}<title>{} · Tessera</title>\n", kHead,
                  escape_html(title));
  html += fmt::format("<style>{}</style>\n</head>\n<body>\n<main>\n<header>", kReportStyle);
  html += fmt::format("<div class=\"brand\">{}Tessera report{}</div>", kMark,
                      report.date.empty() ? "" : fmt::format("<time>{}</time>", escape_html(report.date)));
  html += fmt::format("<h1>{}</h1>", escape_html(title));
  html += "</header>\n" + tiles(report) + "\n";
  html += curves_part(report.history);
  html += confusion_part(report);
  html += mistakes_part(report);
  html += epochs_part(report.history);
  html += fmt::format("<div class=\"pair\">\n<section><h2>Machine</h2>{}</section>\n", machine_part(report));
  if (!report.recipe.empty()) {
    html += fmt::format("<section><h2>Recipe</h2>{}<pre class=\"card\">{}</pre></section>\n",
                        changes_part(report.history), escape_html(report.recipe));
  }
  html += fmt::format("</div>\n<footer>Made by Tessera {}. This page needs no network.</footer>\n</main>\n",
                      escape_html(report.machine.tessera_version));
  return html + fmt::format("<script>{}</script>\n</body>\n</html>\n", kReportScript);
}

void write_report(const std::filesystem::path& path, const Report& report) {
  write_file(path, render_report(report));
}

}  // namespace tessera::train
