// Curves and the table of epochs.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/train/progress.h"

#include "report_chart.h"
#include "report_parts.h"

namespace tessera::train {
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

// A member of the samples against their epoch; every so many samples become their mean.
Series sampled(const RunHistory& history, double StepSample::*member) {
  Series series{.name = "training", .color = "train"};
  const size_t stride = std::max<size_t>(1, (history.samples.size() + kMostPoints - 1) / kMostPoints);
  for (size_t i = 0; i < history.samples.size(); i += stride) {
    const size_t end = std::min(i + stride, history.samples.size());
    double sum = 0;
    for (size_t j = i; j < end; ++j) sum += history.samples[j].*member;
    append(series, history.samples[end - 1].epoch, sum / static_cast<double>(end - i));
  }
  return series;
}

// The mean over a window of neighbors, weighted by a Gaussian: centerd, so that the curve does not lag.
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
    series.y[static_cast<size_t>(i)] = weights > 0 ? sum / weights : kNotMeasured;
  }
  return series;
}

Series by_epoch(const RunHistory& history, const char* name, const char* color, double EpochRow::*member) {
  Series series{.name = name, .color = color, .dots = true};
  for (const EpochRow& row : history.epochs) append(series, static_cast<double>(row.epoch), row.*member);
  return series;
}

// Training as samples (pale) and their average, or by epoch where there are none; the test data by epoch.
std::vector<Series> learning_curves(const RunHistory& history, double StepSample::*sample,
                                    double EpochRow::*train, double EpochRow::*test) {
  std::vector<Series> all;
  if (history.samples.size() > 1) {
    all.push_back(sampled(history, sample));
    all.push_back(smoothed(all[0]));
    all[0].background = true;
    // The first moments, when the network knows nothing, would press the rest of the curve into a corner.
    all[0].off_scale = all[1].off_scale = all[0].x.size() / 8;
  } else {
    all.push_back(by_epoch(history, "training", "train", train));
  }
  all.push_back(by_epoch(history, "test", "test", test));
  return all;
}

std::string cell(const char* format, double value) {
  return fmt::format("<td>{}</td>", std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "–");
}

}  // namespace

std::string curves_part(const RunHistory& history) {
  std::string charts;
  charts += render_chart({.title = "Accuracy",
                          .x_name = "epoch",
                          .series = learning_curves(history, &StepSample::accuracy, &EpochRow::train_accuracy,
                                                    &EpochRow::test_accuracy),
                          .format = format_percent});
  charts += render_chart(
      {.title = "Loss",
       .x_name = "epoch",
       .series = learning_curves(history, &StepSample::loss, &EpochRow::train_loss, &EpochRow::test_loss),
       .format = format_loss});
  Series rate = sampled(history, &StepSample::learning_rate);
  rate.name = "learning rate";
  charts += render_chart({.title = "Learning rate",
                          .x_name = "epoch",
                          .series = {rate},
                          .format = format_loss,
                          .from_zero = true});
  Series speed = sampled(history, &StepSample::images_per_second);
  speed.name = "images/s";
  charts += render_chart({.title = "Throughput, images per second",
                          .x_name = "epoch",
                          .series = {speed},
                          .format = format_rate,
                          .from_zero = true});
  return charts.empty() ? ""
                        : "<section><h2>Training</h2><div class=\"charts\">" + charts + "</div></section>\n";
}

std::string epochs_part(const RunHistory& history) {
  if (history.epochs.empty()) return "";
  std::string rows;
  for (const EpochRow& row : history.epochs) {
    rows += fmt::format("<tr><td>{}</td>", row.epoch);
    rows += cell("{:.4f}", row.train_loss) + cell("{:.2f} %", 100 * row.train_accuracy);
    rows += cell("{:.4f}", row.test_loss) + cell("{:.2f} %", 100 * row.test_accuracy);
    rows += cell("{:.3g}", row.learning_rate) + cell("{:.0f}", row.images_per_second);
    rows += "<td>" + format_duration(row.seconds) + "</td></tr>\n";
  }
  return "<section><h2>Epochs</h2><div class=\"card rows "
         "scroll\"><table><thead><tr><th>Epoch</th><th>Training loss</th>"
         "<th>Training accuracy</th><th>Test loss</th><th>Test accuracy</th><th>Learning "
         "rate</th><th>Images/s</th>"
         "<th>Time</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div></section>\n";
}

}  // namespace tessera::train
