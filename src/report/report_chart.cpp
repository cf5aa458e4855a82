#include "report/report_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/report/sections.h"

namespace tessera::report {
namespace {

// In units of the SVG's view box, which is about a pixel on a desktop.
constexpr double kWidth = 560, kHeight = 270;
constexpr double kLeft = 62, kRight = 14, kTop = 12, kBottom = 44;
constexpr double kFinestTicks = 1e-9;  // distance of two ticks as a share of the numbers at them

// Finite values only.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // A constant whose mean was taken differs from itself by its last bits.
  bool is_constant() const { return high - low <= kFinestTicks * std::max(std::abs(low), std::abs(high)); }
};

struct Axis {
  Extent extent;
  std::vector<double> ticks;
  double start;  // where extent.low lies, in view box units
  double end;

  double place(double value) const {
    return start + (value - extent.low) / (extent.high - extent.low) * (end - start);
  }
};

bool is_drawn(const Series& series, size_t i) {
  return std::isfinite(series.x[i]) && std::isfinite(series.y[i]);
}

// One path, or several where values are missing.
std::string path_of(const Series& series, const Axis& x, const Axis& y) {
  std::string path;
  bool pen_down = false;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (is_drawn(series, i)) {
      path +=
          fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", x.place(series.x[i]), y.place(series.y[i]));
    }
    pen_down = is_drawn(series, i);
  }
  return path;
}

std::string draw_line(const Series& series, const Axis& x, const Axis& y) {
  return fmt::format(R"(<path class="line {}{}" d="{}"/>)", series.color, series.background ? " pale" : "",
                     path_of(series, x, y));
}

std::string draw_dots(const Series& series, const Axis& x, const Axis& y) {
  std::string svg;
  for (size_t i = 0; series.dots && i < series.x.size(); ++i) {
    if (!is_drawn(series, i)) continue;
    svg += fmt::format(R"(<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="3.5"/>)", series.color,
                       x.place(series.x[i]), y.place(series.y[i]));
  }
  return svg;
}

// The inner SVG cuts off what the y axis does not reach.
std::string draw_curves(const Chart& chart, const Axis& x, const Axis& y) {
  constexpr double kMargin = 2;
  constexpr double kInnerWidth = kWidth - kLeft - kRight + 2 * kMargin;
  constexpr double kInnerHeight = kHeight - kTop - kBottom + 2 * kMargin;
  std::string lines;
  std::string dots;
  for (const Series& series : chart.series) {
    lines += draw_line(series, x, y);
    dots += draw_dots(series, x, y);
  }
  return fmt::format(
             R"(<svg class="inner" x="{0}" y="{1}" width="{2}" height="{3}" viewBox="{0} {1} {2} {3}">{4}</svg>)",
             kLeft - kMargin, kTop - kMargin, kInnerWidth, kInnerHeight, lines) +
         dots;
}

std::string draw_axes(const Chart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : y.ticks) {
    svg += fmt::format(R"(<path class="grid" d="M{} {:.1f}H{}"/><text class="y" x="{}" y="{:.1f}">{}</text>)",
                       kLeft, y.place(tick), kWidth - kRight, kLeft - 9, y.place(tick),
                       escape_html(chart.format(tick)));
  }
  for (const double tick : x.ticks) {
    svg += fmt::format(R"(<text class="x" x="{:.1f}" y="{}">{:.6g}</text>)", x.place(tick),
                       kHeight - kBottom + 20, tick);
  }
  return svg + fmt::format(R"(<text class="x name" x="{}" y="{}">{}</text>)", (kLeft + kWidth - kRight) / 2,
                           kHeight - 4, escape_html(chart.x_name));
}

// What the pointer shows: [{"n": name, "c": color, "p": [[x, y, "where", "value"], ...]}, ...].
std::string tooltip_points(const Chart& chart, const Axis& x, const Axis& y) {
  std::vector<std::string> all;
  for (const Series& series : chart.series) {
    if (series.background) continue;
    std::vector<std::string> points;
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!is_drawn(series, i)) continue;
      points.push_back(fmt::format(R"([{:.1f},{:.1f},"{} {:.4g}","{}"])", x.place(series.x[i]),
                                   y.place(series.y[i]), chart.x_name, series.x[i],
                                   chart.format(series.y[i])));
    }
    all.push_back(
        fmt::format(R"({{"n":"{}","c":"{}","p":[{}]}})", series.name, series.color, fmt::join(points, ",")));
  }
  return fmt::format("[{}]", fmt::join(all, ","));
}

std::string legend(const Chart& chart) {
  std::string html;
  for (const Series& series : chart.series) {
    if (series.background) continue;
    html += fmt::format(R"(<span class="key {}">{}</span>)", series.color, escape_html(series.name));
  }
  return html;
}

// Starts at 0 and ends with the data; only a whole number just out of reach is taken in.
Axis x_axis(Extent extent) {
  extent.include(0);
  if (extent.high <= extent.low) extent.high = extent.low + 1;
  if (std::ceil(extent.high) - extent.high < 0.02 * extent.high) extent.high = std::ceil(extent.high);
  std::vector<double> ticks = round_ticks(extent.low, extent.high, 8);
  std::erase_if(ticks, [&](double tick) { return tick < extent.low || tick > extent.high; });
  return {extent, ticks, kLeft, kWidth - kRight};
}

// Starts and ends at a round number.
Axis y_axis(Extent extent, bool from_zero) {
  if (from_zero || extent.is_constant()) extent.include(0);
  const std::vector<double> ticks = round_ticks(extent.low, extent.high, 6);
  return {{ticks.front(), ticks.back()}, ticks, kHeight - kBottom, kTop};
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int most) {
  if (!(high > low)) high = low + 1;
  // Steps that are small beside the numbers themselves would get lost in them.
  const double finest = kFinestTicks * std::max(std::abs(low), std::abs(high));
  const double rough = std::max((high - low) / std::max(most - 1, 1), finest);
  const double magnitude = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
    const double step = factor * magnitude;
    const double first = std::floor(low / step + 1e-9);
    const double last = std::ceil(high / step - 1e-9);
    if (last - first > most - 1) continue;
    std::vector<double> ticks;
    const auto steps = std::max<int64_t>(1, std::llround(last - first));
    for (int64_t i = 0; i <= steps; ++i) ticks.push_back((first + static_cast<double>(i)) * step);
    return ticks;
  }
  return {low, high};
}

std::string render_chart(const Chart& chart) {
  Extent x_extent;
  Extent y_extent;
  for (const Series& series : chart.series) {
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!is_drawn(series, i)) continue;
      x_extent.include(series.x[i]);
      if (i >= series.off_scale) y_extent.include(series.y[i]);
    }
  }
  if (x_extent.low > x_extent.high || y_extent.low > y_extent.high) return "";
  const Axis x = x_axis(x_extent);
  const Axis y = y_axis(y_extent, chart.from_zero);
  return fmt::format(
      R"(<figure class="card chart" data-points="{}"><figcaption><h3>{}</h3>{}</figcaption><div class="plot">)"
      R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg><div class="tip" hidden></div></div></figure>)",
      escape_html(tooltip_points(chart, x, y)), escape_html(chart.title), legend(chart), kWidth, kHeight,
      escape_html(chart.title), draw_axes(chart, x, y), draw_curves(chart, x, y));
}

}  // namespace tessera::report
