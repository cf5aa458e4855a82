#include "tessera/report/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tessera::report {
namespace {

constexpr int kBarColumns = 20;
constexpr int kUnlimited = 1 << 20;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// "" where it was not measured, so that the part is left out.
std::string rate(double per_second, const std::string& samples) {
  return std::isfinite(per_second) ? fmt::format("{:.0f} {}/s", per_second, samples) : "";
}

double fraction_done(const ProgressState& state) {
  return std::clamp(
      static_cast<double>(state.step) / static_cast<double>(std::max<int64_t>(state.steps_per_epoch, 1)), 0.0,
      1.0);
}

std::string bar(double fraction) {
  const auto filled = static_cast<size_t>(std::lround(fraction * kBarColumns));
  return "[" + std::string(filled, '#') + std::string(kBarColumns - filled, '.') + "]";
}

struct Part {
  std::string text;
  int rank;  // 0 stays longest
};

// Drops the part of the highest rank until the line fits.
std::string join_within(std::vector<Part> parts, int columns) {
  std::erase_if(parts, [](const Part& part) { return part.text.empty(); });
  for (;;) {
    std::string line;
    for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
    if (static_cast<int>(line.size()) <= columns) return line;
    if (parts.size() == 1) return line.substr(0, static_cast<size_t>(std::max(columns, 0)));
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.rank < b.rank; }));
  }
}

// Numbers before shares, each in the order of the metrics; a part of rank `number` or `share`.
void append_measures(std::vector<Part>& parts, const train::Numbers& measures,
                     const std::vector<nn::Metric>& metrics, const std::string& prefix, int number,
                     int share) {
  for (const bool percent : {false, true}) {
    for (const nn::Metric& metric : metrics) {
      const auto found = measures.find(metric.name);
      if (metric.percent != percent || found == measures.end() || !std::isfinite(found->second)) continue;
      std::string name = prefix + metric.name;
      std::replace(name.begin(), name.end(), '_', ' ');
      parts.push_back({percent ? fmt::format("{} {:.1f} %", name, 100 * found->second)
                               : fmt::format("{} {:.4f}", name, found->second),
                       percent ? share : number});
    }
  }
}

double steps_done(const ProgressState& state) {
  return static_cast<double>((state.epoch - 1) * state.steps_per_epoch + state.step);
}

}  // namespace

std::string format_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string progress_line(const ProgressState& state, const ProgressOptions& options, double seconds_left,
                          int columns) {
  const double fraction = fraction_done(state);
  const std::string place = state.epochs > 0 ? fmt::format("epoch {}/{}", state.epoch, state.epochs)
                                             : fmt::format("step {}/{}", state.step, state.steps_per_epoch);
  std::vector<Part> parts{
      {place, 0}, {bar(fraction), 6}, {fmt::format("{:3.0f} %", std::floor(100 * fraction)), 2}};
  append_measures(parts, state.measures, options.metrics, "", 1, 3);
  parts.push_back({rate(state.samples_per_second, options.samples), 5});
  parts.push_back({seconds_left >= 0 ? format_duration(seconds_left) + " left" : "", 4});
  return join_within(std::move(parts), columns);
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.clock) options_.clock = steady_seconds;
  terminal_ = options_.terminal ? *options_.terminal : isatty(fileno(options_.output)) == 1;
}

Progress::~Progress() {
  if (drawn_) std::fputc('\n', options_.output);
  std::fflush(options_.output);
}

int Progress::columns() const {
  if (options_.columns) return *options_.columns;
  winsize size{};
  const bool known = ioctl(fileno(options_.output), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

void Progress::update(const ProgressState& state) {
  const double now = options_.clock();
  if (!started_) {
    started_ = true;
    start_time_ = now;
    start_steps_ = steps_done(state);
    last_drawn_ = now;
    if (!terminal_) return;
  } else if (now - last_drawn_ < (terminal_ ? options_.terminal_interval : options_.plain_interval)) {
    return;
  }
  last_drawn_ = now;
  draw(state, now);
}

void Progress::draw(const ProgressState& state, double now) {
  const double done = steps_done(state) - start_steps_;
  const double total = static_cast<double>(std::max<int64_t>(state.epochs, 1) * state.steps_per_epoch);
  const double left = done > 0 ? (now - start_time_) / done * (total - steps_done(state)) : -1;
  if (!terminal_) {
    print(progress_line(state, options_, left, kUnlimited));
    return;
  }
  // The last column stays free: some terminals wrap as soon as it is written. ESC [ K clears to the end of
  // the line.
  const std::string line = progress_line(state, options_, left, columns() - 1);
  std::fprintf(options_.output, "\r%s\x1b[K", line.c_str());
  std::fflush(options_.output);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", options_.output);
  drawn_ = false;
}

void Progress::print(std::string_view line) {
  clear();
  std::fprintf(options_.output, "%.*s\n", static_cast<int>(line.size()), line.data());
  std::fflush(options_.output);
}

void Progress::finish_epoch(const train::EpochRow& row, const std::vector<train::EvaluationRow>& evaluations,
                            int64_t epochs) {
  std::vector<Part> parts{
      {epochs > 0 ? fmt::format("epoch {}/{}", row.epoch, epochs) : fmt::format("step {}", row.step), 0}};
  append_measures(parts, row.measures, options_.metrics, "", 1, 3);
  for (const train::EvaluationRow& evaluation : evaluations)
    append_measures(parts, evaluation.results, options_.metrics, evaluation.name + " ", 4, 2);
  parts.push_back({rate(row.samples_per_second, options_.samples), 5});
  parts.push_back({format_duration(row.seconds), 6});
  print(join_within(std::move(parts), terminal_ ? columns() - 1 : kUnlimited));
}

}  // namespace tessera::report
