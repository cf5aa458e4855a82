#include "tessera/tasks/classification_sections.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/data/dataset.h"
#include "tessera/report/sections.h"

namespace tessera::tasks {
namespace {

using report::escape_html;

constexpr int64_t kMostClasses = 24;  // that a matrix still shows legibly
constexpr size_t kMostPairs = 20;
constexpr double kStrong = 0.55;  // share of color from which the text on it is inverted

class ConfusionTable {
 public:
  ConfusionTable(const std::vector<std::string>& names, const Confusion& confusion)
      : names_(names), confusion_(confusion), classes_(static_cast<int64_t>(names.size())) {
    for (const auto& [pair, count] : confusion_) {
      require(pair.first >= 0 && pair.second >= 0, ErrorCode::invalid_argument,
              "{} examples are of class {} and taken for {}: classes are numbered from 0", count, pair.first,
              pair.second);
      examples_[pair.first] += count;
      classes_ = std::max(classes_, std::max(pair.first, pair.second) + 1);
    }
  }

  int64_t classes() const { return classes_; }
  const Confusion& counts() const { return confusion_; }
  std::string name(int64_t number) const { return escape_html(data::class_name(names_, number)); }
  int64_t count(int64_t truth, int64_t prediction) const {
    const auto found = confusion_.find({truth, prediction});
    return found == confusion_.end() ? 0 : found->second;
  }
  int64_t examples(int64_t truth) const {
    const auto found = examples_.find(truth);
    return found == examples_.end() ? 0 : found->second;
  }
  double share(int64_t truth, int64_t prediction) const {
    return static_cast<double>(count(truth, prediction)) /
           static_cast<double>(std::max<int64_t>(examples(truth), 1));
  }

 private:
  const std::vector<std::string>& names_;
  const Confusion& confusion_;
  int64_t classes_;
  std::map<int64_t, int64_t> examples_;  // by their class
};

std::string matrix_cell(const ConfusionTable& confusion, int64_t truth, int64_t prediction) {
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
      strength, count, confusion.examples(truth), confusion.name(truth),
      hit ? "right" : "taken for " + confusion.name(prediction), 100 * share, count);
}

std::string matrix(const ConfusionTable& confusion) {
  std::string html = "<div class=\"card matrix scroll\"><table><thead><tr><th></th>";
  for (int64_t prediction = 0; prediction < confusion.classes(); ++prediction) {
    html += fmt::format(R"(<th scope="col"><span>{}</span></th>)", confusion.name(prediction));
  }
  html += "<th scope=\"col\" class=\"rate\">right</th></tr></thead><tbody>\n";
  for (int64_t truth = 0; truth < confusion.classes(); ++truth) {
    html += fmt::format(R"(<tr><th scope="row">{}</th>)", confusion.name(truth));
    for (int64_t prediction = 0; prediction < confusion.classes(); ++prediction) {
      html += matrix_cell(confusion, truth, prediction);
    }
    html += fmt::format("<td class=\"rate\">{:.1f} %</td></tr>\n", 100 * confusion.share(truth, truth));
  }
  return html + "</tbody></table></div>";
}

std::string pairs(const ConfusionTable& confusion) {
  struct Pair {
    int64_t truth, prediction, count;
  };
  std::vector<Pair> worst;
  for (const auto& [pair, count] : confusion.counts()) {
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
                        confusion.name(pair.truth), confusion.name(pair.prediction), pair.count,
                        100 * confusion.share(pair.truth, pair.prediction));
  }
  return html + "</tbody></table></div>";
}

std::string mistake_figure(const std::vector<std::string>& classes, const Mistake& mistake) {
  const std::string picture = report::picture_source(mistake.picture);
  const std::string truth = escape_html(data::class_name(classes, mistake.truth));
  const std::string prediction = escape_html(data::class_name(classes, mistake.prediction));
  const std::string confidence =
      mistake.confidence < 0.9995 ? fmt::format("{:.1f} %", 100 * mistake.confidence) : "&gt; 99.9 %";
  return fmt::format(
      R"(<figure class="card mistake" title="test image {}"><img src="{}" alt="{} taken for {}">)"
      R"(<figcaption><div class="truth">{}</div><div class="wrong">taken for <span>{}</span></div><div class="sure">{} sure</div>)"
      "</figcaption></figure>\n",
      mistake.index, picture, truth, prediction, truth, prediction, confidence);
}

}  // namespace

train::ReportSection confusion_section(const std::vector<std::string>& classes, const Confusion& confusion) {
  const ConfusionTable table(classes, confusion);
  const bool is_small = table.classes() <= kMostClasses;
  return {is_small ? "Confusion matrix" : "Most frequent confusions",
          fmt::format(
              "<p class=\"note\">{}</p>{}",
              is_small ? "Test images by their class (rows) and by what the network took them for (columns)."
                       : "Test images of one class that the network took for another.",
              is_small ? matrix(table) : pairs(table))};
}

train::ReportSection mistakes_section(const std::vector<std::string>& classes,
                                      const std::vector<Mistake>& mistakes) {
  std::string html =
      "<p class=\"note\">Test images whose right answer the network "
      "thought least likely: what they are, and what it took them for.</p><div class=\"mistakes\">\n";
  for (const Mistake& mistake : mistakes) html += mistake_figure(classes, mistake);
  return {"Worst mistakes", html + "</div>"};
}

}  // namespace tessera::tasks
