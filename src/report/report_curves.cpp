// Curves and the table of epochs.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/report/progress.h"
#include "tessera/report/sections.h"

#include "report/report_chart.h"
#include "report/report_parts.h"

namespace tessera::report {
namespace {

constexpr size_t kMostPoints = 500;  // of one curve; neighbors are averaged
constexpr double kWindows = 70;      // widths of the smoothing window in one curve

std::string format_loss(double value) {
  return fmt::format("{:.4g}", value);
}
std::string format_percent(double value) {
  return fmt::format("{:.4g} %", 100 * value);
}
std::string format_rate(double value) {
  return std::abs(value) >= 1 ? group_digits(std::llround(value)) : fmt::format("{:.3g}", value);
}

void append(Series& series, double x, double y) {
  series.x.push_back(x);
  series.y.push_back(y);
}

// What `value` takes of the samples against their epoch; every so many samples become their mean.
template <typename Function>
Series sampled(const train::RunHistory& history, const Function& value) {
  Series series{.name = "training", .color = "train"};
  const size_t stride = std::max<size_t>(1, (history.samples.size() + kMostPoints - 1) / kMostPoints);
  for (size_t i = 0; i < history.samples.size(); i += stride) {
    const size_t end = std::min(i + stride, history.samples.size());
    double sum = 0;
    for (size_t j = i; j < end; ++j) sum += value(history.samples[j]);
    append(series, history.samples[end - 1].epoch, sum / static_cast<double>(end - i));
  }
  return series;
}

double number_of(const train::Numbers& numbers, const std::string& name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? train::kNotMeasured : found->second;
}

// The mean over a window of neighbors, weighted by a Gaussian: centered, so that the curve does not lag.
Series smoothed(const Series& raw) {
  Series series = raw;
  const auto size = static_cast<std::ptrdiff_t>(raw.y.size());
  const double width = static_cast<double>(size) / kWindows;
  const auto reach = static_cast<std::ptrdiff_t>(std::ceil(3 * width));
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    double sum = 0;
    double weights = 0;
    for (std::ptrdiff_t j = std::max<std::ptrdiff_t>(0, i - reach); j < std::min(size, i + reach + 1); ++j) {
      const double y = raw.y[static_cast<size_t>(j)];
      const double distance = static_cast<double>(j - i) / width;
      const double weight = std::isfinite(y) ? std::exp(-distance * distance / 2) : 0;
      sum += weight > 0 ? weight * y : 0;
      weights += weight;
    }
    series.y[static_cast<size_t>(i)] = weights > 0 ? sum / weights : train::kNotMeasured;
  }
  return series;
}

std::vector<std::string> evaluation_names(const train::RunHistory& history) {
  std::vector<std::string> names;
  for (const train::EvaluationRow& row : history.evaluations) {
    if (std::find(names.begin(), names.end(), row.name) == names.end()) names.push_back(row.name);
  }
  return names;
}

// Training as samples (pale) and their average, or by epoch where there are none; evaluations as they were
// made.
std::vector<Series> learning_curves(const train::RunHistory& history, const std::string& metric) {
  std::vector<Series> all;
  if (history.samples.size() > 1) {
    all.push_back(
        sampled(history, [&](const train::StepSample& one) { return number_of(one.measures, metric); }));
    all.push_back(smoothed(all[0]));
    all[0].background = true;
    // The first moments, when the network knows nothing, would press the rest of the curve into a corner.
    all[0].off_scale = all[1].off_scale = all[0].x.size() / 8;
  } else {
    Series series{.name = "training", .color = "train", .dots = true};
    for (const train::EpochRow& row : history.epochs)
      append(series, static_cast<double>(row.epoch), number_of(row.measures, metric));
    all.push_back(std::move(series));
  }
  for (const std::string& name : evaluation_names(history)) {
    Series series{.name = name, .color = "test", .dots = true};
    for (const train::EvaluationRow& row : history.evaluations) {
      if (row.name == name) append(series, row.epoch, number_of(row.results, metric));
    }
    all.push_back(std::move(series));
  }
  return all;
}

// "<td>...</td>" for each metric that was measured in training, or at the end of an epoch by an evaluation.
class EpochTable {
 public:
  explicit EpochTable(const Report& report) : report_(report) {
    for (const nn::Metric& metric : report.metrics) {
      const auto has = [&](const train::EpochRow& row) { return row.measures.contains(metric.name); };
      if (std::any_of(report.history.epochs.begin(), report.history.epochs.end(), has))
        columns_.push_back({"", metric});
    }
    for (const std::string& name : evaluation_names(report.history)) {
      for (const nn::Metric& metric : report.metrics) {
        const auto has = [&](const train::EvaluationRow& row) {
          return row.name == name && row.results.contains(metric.name);
        };
        if (std::any_of(report.history.evaluations.begin(), report.history.evaluations.end(), has))
          columns_.push_back({name, metric});
      }
    }
  }

  std::string head() const {
    std::string html;
    for (const Column& column : columns_) {
      const std::string prefix = column.evaluation.empty() ? "training" : column.evaluation;
      html += fmt::format("<th>{}</th>", escape_html(heading(prefix + " " + column.metric.name)));
    }
    return html;
  }

  std::string cells(const train::EpochRow& row) const {
    std::string html;
    for (const Column& column : columns_) {
      double value = number_of(row.measures, column.metric.name);
      if (!column.evaluation.empty()) {
        value = train::kNotMeasured;
        for (const train::EvaluationRow& one : report_.history.evaluations) {
          if (one.name == column.evaluation && one.step == row.step)
            value = number_of(one.results, column.metric.name);
        }
      }
      html += "<td>" + format_metric(column.metric, value) + "</td>";
    }
    return html;
  }

 private:
  struct Column {
    std::string evaluation;  // empty: training
    nn::Metric metric;
  };
  const Report& report_;
  std::vector<Column> columns_;
};

}  // namespace

std::string curves_part(const Report& report) {
  const train::RunHistory& history = report.history;
  std::string charts;
  for (const nn::Metric& metric : report.metrics) {
    charts += render_chart({.title = heading(metric.name),
                            .x_name = "epoch",
                            .series = learning_curves(history, metric.name),
                            .format = metric.percent ? format_percent : format_loss});
  }
  Series rate = sampled(history, [](const train::StepSample& one) { return one.learning_rate; });
  rate.name = "learning rate";
  charts += render_chart({.title = "Learning rate",
                          .x_name = "epoch",
                          .series = {rate},
                          .format = format_loss,
                          .from_zero = true});
  Series speed = sampled(history, [](const train::StepSample& one) { return one.samples_per_second; });
  speed.name = report.samples + "/s";
  charts += render_chart({.title = "Throughput, " + report.samples + " per second",
                          .x_name = "epoch",
                          .series = {speed},
                          .format = format_rate,
                          .from_zero = true});
  return charts.empty() ? ""
                        : "<section><h2>Training</h2><div class=\"charts\">" + charts + "</div></section>\n";
}

std::string epochs_part(const Report& report) {
  if (report.history.epochs.empty()) return "";
  const EpochTable table(report);
  const bool has_stages = report.history.epochs.back().stage > 0;
  std::string rows;
  for (const train::EpochRow& row : report.history.epochs) {
    const std::string stage = has_stages ? fmt::format("<td>{}</td>", row.stage + 1) : "";
    rows += fmt::format("<tr>{}<td>{}</td>{}<td>{:.3g}</td><td>{:.0f}</td><td>{}</td></tr>\n", stage,
                        row.epoch, table.cells(row), row.learning_rate, row.samples_per_second,
                        format_duration(row.seconds));
  }
  return fmt::format(
      "<section><h2>Epochs</h2><div class=\"card rows "
      "scroll\"><table><thead><tr>{}<th>Epoch</th>{}<th>Learning "
      "rate</th><th>{}/s</th><th>Time</th></tr></thead><tbody>\n{}</tbody></table></div></section>\n",
      has_stages ? "<th>Stage</th>" : "", table.head(), escape_html(heading(report.samples)), rows);
}

}  // namespace tessera::report
