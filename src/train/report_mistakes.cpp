// The confusion matrix and the worst mistakes.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/data/dataset.h"
#include "tessera/train/png.h"

#include "report_chart.h"
#include "report_parts.h"

namespace tessera::train {
namespace {

constexpr int64_t kMostClasses = 24;  // that a matrix still shows legibly
constexpr size_t kMostPairs = 20;
constexpr double kStrong = 0.55;  // share of color from which the text on it is inverted

std::string class_name(const Report& report, int64_t number) {
  return data::class_name(report.classes, number);
}

class Confusion {
 public:
  explicit Confusion(const Report& of) : report(of), classes(static_cast<int64_t>(of.classes.size())) {
    for (const auto& [pair, count] : report.confusion) {
      images_[pair.first] += count;
      classes = std::max(classes, std::max(pair.first, pair.second) + 1);
    }
  }

  const Report& report;
  int64_t classes;

  int64_t count(int64_t truth, int64_t prediction) const {
    const auto found = report.confusion.find({truth, prediction});
    return found == report.confusion.end() ? 0 : found->second;
  }
  int64_t images(int64_t truth) const {
    const auto found = images_.find(truth);
    return found == images_.end() ? 0 : found->second;
  }
  double share(int64_t truth, int64_t prediction) const {
    return static_cast<double>(count(truth, prediction)) /
           static_cast<double>(std::max<int64_t>(images(truth), 1));
  }

 private:
  std::map<int64_t, int64_t> images_;  // by their class
};

std::string matrix_cell(const Confusion& confusion, int64_t truth, int64_t prediction) {
  const int64_t count = confusion.count(truth, prediction);
  const bool hit = truth == prediction;
  const double share = confusion.share(truth, prediction);
  // A mistake of a few percent should be seen: its color grows with the root.
  const double strength = hit ? share : std::min(1.0, 1.6 * std::sqrt(share));
  std::string kind = hit ? "hit" : "";
  if (count == 0) kind = "none";
  if (count > 0 && strength > kStrong) kind += " strong";
  return fmt::format(
      R"html(<td class="{}" style="--a:{:.2f}" title="{} of {} {}: {} ({:.1f} %)">{}</td>)html", kind,
      strength, count, confusion.images(truth), escape_html(class_name(confusion.report, truth)),
      hit ? "right" : "taken for " + escape_html(class_name(confusion.report, prediction)), 100 * share,
      count);
}

std::string matrix(const Confusion& confusion) {
  std::string html = "<div class=\"card matrix scroll\"><table><thead><tr><th></th>";
  for (int64_t prediction = 0; prediction < confusion.classes; ++prediction) {
    html += fmt::format(R"(<th scope="col"><span>{}</span></th>)",
                        escape_html(class_name(confusion.report, prediction)));
  }
  html += "<th scope=\"col\" class=\"rate\">right</th></tr></thead><tbody>\n";
  for (int64_t truth = 0; truth < confusion.classes; ++truth) {
    html += fmt::format(R"(<tr><th scope="row">{}</th>)", escape_html(class_name(confusion.report, truth)));
    for (int64_t prediction = 0; prediction < confusion.classes; ++prediction) {
      html += matrix_cell(confusion, truth, prediction);
    }
    html += fmt::format("<td class=\"rate\">{:.1f} %</td></tr>\n", 100 * confusion.share(truth, truth));
  }
  return html + "</tbody></table></div>";
}

std::string pairs(const Confusion& confusion) {
  struct Pair {
    int64_t truth, prediction, count;
  };
  std::vector<Pair> worst;
  for (const auto& [pair, count] : confusion.report.confusion) {
    if (pair.first != pair.second && count > 0) worst.push_back({pair.first, pair.second, count});
  }
  std::stable_sort(worst.begin(), worst.end(),
                   [](const Pair& a, const Pair& b) { return a.count > b.count; });
  worst.resize(std::min(worst.size(), kMostPairs));
  std::string html =
      "<div class=\"card rows scroll\"><table><thead><tr><th>Class</th><th class=\"text\">Taken for</th>"
      "<th>Images</th><th>Share of the class</th></tr></thead><tbody>\n";
  for (const Pair& pair : worst) {
    html += fmt::format("<tr><td>{}</td><td class=\"text\">{}</td><td>{}</td><td>{:.1f} %</td></tr>\n",
                        escape_html(class_name(confusion.report, pair.truth)),
                        escape_html(class_name(confusion.report, pair.prediction)), pair.count,
                        100 * confusion.share(pair.truth, pair.prediction));
  }
  return html + "</tbody></table></div>";
}

// Images that are neither grey nor RGB are shown by their first channel.
std::string picture_of(const Mistake& mistake) {
  if (mistake.channels <= 1 || mistake.channels == 3) {
    return encode_png(mistake.pixels, mistake.height, mistake.width, mistake.channels);
  }
  std::vector<uint8_t> first;
  for (size_t i = 0; i < mistake.pixels.size(); i += static_cast<size_t>(mistake.channels)) {
    first.push_back(mistake.pixels[i]);
  }
  return encode_png(first, mistake.height, mistake.width, 1);
}

std::string mistake_figure(const Report& report, const Mistake& mistake) {
  const std::string picture = encode_base64(picture_of(mistake));
  const std::string truth = escape_html(class_name(report, mistake.truth));
  const std::string prediction = escape_html(class_name(report, mistake.prediction));
  const std::string confidence =
      mistake.confidence < 0.9995 ? fmt::format("{:.1f} %", 100 * mistake.confidence) : "&gt; 99.9 %";
  return fmt::format(
      R"(<figure class="card mistake" title="test image {}"><img src="data:image/png;base64,{}" alt="{} taken for {}">)"
      R"(<figcaption><div class="truth">{}</div><div class="wrong">taken for <span>{}</span></div><div class="sure">{} sure</div>)"
      "</figcaption></figure>\n",
      mistake.index, picture, truth, prediction, truth, prediction, confidence);
}

}  // namespace

std::string confusion_part(const Report& report) {
  if (report.confusion.empty()) return "";
  const Confusion confusion(report);
  const bool is_small = confusion.classes <= kMostClasses;
  return fmt::format(
      "<section><h2>{}</h2><p class=\"note\">{}</p>{}</section>\n",
      is_small ? "Confusion matrix" : "Most frequent confusions",
      is_small ? "Test images by their class (rows) and by what the network took them for (columns)."
               : "Test images of one class that the network took for another.",
      is_small ? matrix(confusion) : pairs(confusion));
}

std::string mistakes_part(const Report& report) {
  if (report.mistakes.empty()) return "";
  std::string html =
      "<section><h2>Worst mistakes</h2><p class=\"note\">Test images whose right answer the network "
      "thought least likely: what they are, and what it took them for.</p><div class=\"mistakes\">\n";
  for (const Mistake& mistake : report.mistakes) html += mistake_figure(report, mistake);
  return html + "</div></section>\n";
}

}  // namespace tessera::train
