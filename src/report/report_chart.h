// Line charts as inline SVG. Drawn here rather than by a JavaScript library: the curves then stand in the
// page itself, follow its colors in light and dark, print, and need neither scripts nor 200 KB of library in
// every report.
#pragma once

#include <string>
#include <vector>

namespace tessera::report {

struct Series {
  std::string name;
  std::string color;  // class of the style sheet: "train", "test"
  std::vector<double> x = {};
  std::vector<double> y = {};  // NaN is a gap
  bool background = false;     // drawn pale, without legend and tooltip
  bool dots = false;           // a dot at each point
  size_t off_scale = 0;        // the y axis need not reach the first so many points
};

struct Chart {
  std::string title;
  std::string x_name;  // "epoch"
  std::vector<Series> series;
  std::string (*format)(double);  // of a y value
  bool from_zero = false;         // whether the y axis starts at 0
};

// A <figure>; "" when no series has a finite value.
std::string render_chart(const Chart& chart);

// At most `most` round numbers (1, 2 or 5 times a power of ten apart) whose first is at most `low` and whose
// last is at least `high`.
std::vector<double> round_ticks(double low, double high, int most);

}  // namespace tessera::report
