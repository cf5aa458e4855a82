#include "tessera/tasks/classification_sections.h"

#include <gtest/gtest.h>

#include "tessera/report/report.h"

#include "support/expect_error.h"
#include "support/page.h"

namespace tessera::tasks {
namespace {

using testing::count;
using testing::unbalanced;

Confusion sample_confusion() {
  Confusion confusion;
  for (int64_t i = 0; i < 10; ++i) confusion[{i, i}] = 1000;
  const auto move = [&](int64_t truth, int64_t prediction, int64_t count) {
    confusion[{truth, truth}] -= count;
    confusion[{truth, prediction}] += count;
  };
  move(0, 6, 84), move(0, 3, 14), move(0, 2, 13), move(0, 8, 4), move(1, 3, 8), move(2, 4, 47),
      move(2, 6, 52);
  move(3, 6, 20), move(3, 4, 22), move(3, 0, 14), move(4, 2, 33), move(4, 6, 46), move(4, 3, 19),
      move(5, 7, 10);
  move(6, 0, 98), move(6, 2, 47), move(6, 4, 49), move(6, 3, 21), move(7, 9, 22), move(7, 5, 6),
      move(8, 6, 3);
  move(9, 7, 28), move(9, 5, 5), move(1, 6, 1), move(5, 9, 4);
  return confusion;
}

std::vector<std::string> sample_classes() {
  return {"T-shirt/top", "trouser", "pullover", "dress", "coat",
          "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"};
}

std::vector<Mistake> sample_mistakes() {
  std::vector<Mistake> mistakes;
  for (int64_t i = 0; i < 16; ++i) {
    Mistake mistake{.picture = {.pixels = std::vector<uint8_t>(28 * 28), .height = 28, .width = 28},
                    .index = 37 * i + 5,
                    .truth = i % 2 == 0 ? 6 : 0,
                    .prediction = i % 3 == 0 ? 4 : 2,
                    .confidence = 0.9998 - 0.004 * static_cast<double>(i)};
    for (size_t y = 0; y < 28; ++y) {
      for (size_t x = 0; x < 28; ++x) {
        mistake.picture.pixels[28 * y + x] =
            static_cast<uint8_t>((x * y + static_cast<size_t>(i) * 16) % 256);
      }
    }
    mistakes.push_back(std::move(mistake));
  }
  return mistakes;
}

std::string page_of(const std::vector<std::string>& classes) {
  return report::render_sections("Classes", {confusion_section(classes, sample_confusion()),
                                             mistakes_section(classes, sample_mistakes())});
}

TEST(ClassificationSections, ShowWhatWasTakenForWhat) {
  const std::string page = page_of(sample_classes());
  for (const char* text :
       {"Confusion matrix", "98 of 1000 shirt: taken for T-shirt/top (9.8 %)", "Worst mistakes"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  EXPECT_EQ(count(page, "data:image/png;base64,"), 16u);
  EXPECT_EQ(count(page, " src="), count(page, " src=\"data:"));
  EXPECT_EQ(unbalanced(page), "");
}

TEST(ClassificationSections, EscapeNames) {
  const std::string evil = "<script>alert('&')</script>\"";
  const std::string page = page_of(std::vector<std::string>(10, evil));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;&quot;"), std::string::npos);
  EXPECT_EQ(unbalanced(page), "");
}

TEST(ConfusionSection, ListsThePairsOfManyClasses) {
  const train::ReportSection section = confusion_section({"zero"}, {{{7, 42}, 9}, {{7, 7}, 41}});
  EXPECT_EQ(section.title, "Most frequent confusions");
  EXPECT_NE(section.html.find("<td>7</td><td class=\"text\">42</td><td>9</td><td>18.0 %</td>"),
            std::string::npos);
}

// As many entries as there are pairs: a square of a million classes would be a terabyte.
TEST(ConfusionSection, TakesAnyNumberOfClasses) {
  const train::ReportSection section = confusion_section({}, {{{999999, 3}, 2}, {{5, 5}, 1}});
  EXPECT_NE(section.html.find("<td>999999</td><td class=\"text\">3</td><td>2</td><td>100.0 %</td>"),
            std::string::npos);
  EXPECT_LT(section.html.size(), 50000u);
}

// A network may have more outputs than its data has classes.
TEST(ConfusionSection, ShowsPredictionsBeyondTheClasses) {
  const train::ReportSection section = confusion_section({"cat", "dog"}, {{{0, 0}, 3}, {{1, 4}, 7}});
  EXPECT_EQ(section.title, "Confusion matrix");
  EXPECT_NE(section.html.find("7 of 7 dog: taken for 4 (100.0 %)"), std::string::npos) << section.html;
}

TEST(ClassificationSections, RefuseWhatDoesNotFit) {
  EXPECT_ERROR(confusion_section({}, {{{1, -2}, 3}}), ErrorCode::invalid_argument, "3 examples", "class 1",
               "-2");
  std::vector<Mistake> mistakes = sample_mistakes();
  mistakes[0].picture.channels = 3;
  EXPECT_ERROR(mistakes_section({}, mistakes), ErrorCode::invalid_argument, "[28, 28, 3]");
}

}  // namespace
}  // namespace tessera::tasks
