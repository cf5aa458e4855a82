#include "tessera/report/report.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"

#include "sample_report.h"
#include "support/expect_error.h"
#include "support/page.h"
#include "support/temporary_folder.h"

namespace tessera::report {
namespace {

using testing::count;
using testing::unbalanced;

std::string unescape(std::string text) {
  for (const auto& [entity, plain] :
       {std::pair{"&quot;", "\""}, {"&#39;", "'"}, {"&lt;", "<"}, {"&gt;", ">"}}) {
    for (size_t at = text.find(entity); at != std::string::npos; at = text.find(entity, at)) {
      text.replace(at, std::string(entity).size(), plain);
    }
  }
  return text;
}

TEST(Report, ShowsEveryPart) {
  const std::string page = render_report(sample_report());
  for (const char* text : {"resnet_small on Fashion-MNIST", "93.12", "3 min 23 s", "272,186", "Accuracy",
                           "Loss", "Learning rate", "Throughput", "Samples", "As they come.",
                           "One of them could not be read.", "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
                           "23.0 GiB", "oneDNN", "kind = &quot;idx&quot;", "Epochs"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(count(page, "data:image/png;base64,"), 2u);
  EXPECT_EQ(count(page, "<svg viewBox=\"0 0 560 270\""), 4u);
  EXPECT_EQ(unbalanced(page), "");
}

TEST(Report, IsTheSameFromJson) {
  Report report = sample_report();
  report.history.samples[1].measures["loss"] = train::kNotMeasured;
  report.summary.evaluations["test"]["auc"] = train::kNotMeasured;
  const Report read = report_from_json(to_json(report), "there");
  EXPECT_EQ(render_report(read), render_report(report));
  EXPECT_EQ(to_json(read), to_json(report));
  EXPECT_EQ(to_json(read.summary), to_json(report.summary));
  EXPECT_EQ(read.history.evaluations, report.history.evaluations);
  EXPECT_EQ(read.machine.memory_bytes, report.machine.memory_bytes);
  EXPECT_ERROR(report_from_json("{}", "there"), ErrorCode::invalid_file, "there: not a report");
  EXPECT_ERROR(report_from_json("[", "there"), ErrorCode::invalid_file, "there");
}

TEST(Report, NeedsNothingBesideIt) {
  const std::string page = render_report(sample_report());
  // The one address is the name of SVG's elements.
  EXPECT_EQ(count(page, "http"), count(page, "http://www.w3.org/2000/svg") + count(page, "http-equiv"));
  EXPECT_EQ(count(page, " src="), count(page, " src=\"data:"));
  EXPECT_EQ(count(page, "url("), 0u);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Report, GivesTheTooltipsTheirValues) {
  const std::string page = render_report(sample_report());
  int charts = 0;
  const std::string opening = "data-points=\"";
  for (size_t at = page.find(opening); at != std::string::npos; at = page.find(opening, at)) {
    at += opening.size();
    const auto series = nlohmann::json::parse(unescape(page.substr(at, page.find('"', at) - at)));
    ASSERT_FALSE(series.empty());
    for (const auto& one : series) {
      EXPECT_FALSE(one["p"].empty());
      for (const auto& point : one["p"]) EXPECT_EQ(point.size(), 4u);
    }
    ++charts;
  }
  EXPECT_EQ(charts, 4);
}

TEST(Report, EscapesAllText) {
  const std::string evil = "<script>alert('&')</script>\"";
  Report report = sample_report();
  report.data = report.date = report.recipe = evil;
  report.summary.network = report.summary.device = report.summary.precision = evil;
  report.summary.versions = {{evil, evil}};
  report.machine.processor = report.machine.operating_system = report.machine.tessera_version = evil;
  report.samples = evil;
  report.metrics[0].name = report.summary.evaluations.begin()->first + evil;
  report.history.evaluations[0].name = report.history.changes.emplace_back().key = evil;
  Picture picture = sample_picture();
  picture.caption = evil;
  report.sections = {gallery_section(evil, evil, {picture}), remarks_section({evil})};
  const std::string page = render_report(report);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;&quot;"), std::string::npos);
  EXPECT_EQ(unbalanced(page), "");
}

TEST(Report, LeavesOutWhatThereIsNot) {
  const std::string page = render_report({.summary = {.device = "cpu", .network = "mlp"}});
  for (const char* text :
       {"<figure", "Samples", "<h2>Data", "Epochs</h2>", "Test accuracy", "Recipe", "nan"}) {
    EXPECT_EQ(page.find(text, page.find("<main>")), std::string::npos) << text;
  }
  EXPECT_EQ(unbalanced(page), "");
}

TEST(Report, SurvivesStrangeHistories) {
  Report report = sample_report();
  report.history = {};
  report.history.epochs.push_back({.epoch = 1, .measures = {{"loss", 0.5}}});  // nothing but one loss
  EXPECT_EQ(count(render_report(report), "<svg viewBox=\"0 0 560 270\""), 1u);

  report.history = {};
  for (int64_t step = 1; step <= 100000; ++step) {
    report.history.samples.push_back({.step = step,
                                      .epoch = static_cast<double>(step) / 100,
                                      .measures = {{"loss", train::kNotMeasured}}});
  }
  const std::string page = render_report(report);  // constant zero curves, none of loss and accuracy
  EXPECT_EQ(count(page, "<svg viewBox=\"0 0 560 270\""), 2u);
  EXPECT_LT(page.size(), 150000u);
  EXPECT_EQ(page.find("nan", page.find("<main>")), std::string::npos);
}

TEST(Report, SaysWhatAResumedRunChanged) {
  Report report = sample_report();
  EXPECT_EQ(render_report(report).find("From step"), std::string::npos);
  report.history.changes = {{.step = 12, .key = "optimizer.momentum", .before = "0.9", .after = "<0.5>"}};
  EXPECT_NE(
      render_report(report).find("From step 12 on optimizer.momentum is &lt;0.5&gt;; before it was 0.9."),
      std::string::npos);
}

// The mean of equal losses differs from them in its last bit, and so do two of its windows.
TEST(Report, DrawsCurvesThatAreConstantButForTheirLastBit) {
  for (const double value : {2.302585092994046, 1.0, 1e-30, 1e300}) {
    Report report{.metrics = sample_report().metrics};
    for (int64_t step = 1; step <= 60; ++step) {
      report.history.samples.push_back(
          {.step = step,
           .epoch = static_cast<double>(step),
           .measures = {{"loss", step % 2 == 0 ? value : std::nextafter(value, 0.0)}, {"accuracy", 0.1}},
           .learning_rate = value});
    }
    const std::string page = render_report(report);
    EXPECT_EQ(count(page, "<svg viewBox=\"0 0 560 270\""), 4u) << value;
    EXPECT_EQ(page.find("nan", page.find("<main>")), std::string::npos) << value;
    EXPECT_LT(page.size(), 150000u) << value;
  }
}

TEST(GallerySection, ShowsPicturesOfManyChannels) {
  Picture picture = sample_picture();
  const std::string grey = gallery_section("Samples", "", {picture}).html;
  std::vector<uint8_t> pixels;
  for (const uint8_t pixel : picture.pixels) pixels.insert(pixels.end(), {pixel, 1, 2, 3, 4});
  picture.pixels = pixels;
  picture.channels = 5;
  EXPECT_EQ(gallery_section("Samples", "", {picture}).html, grey);
  EXPECT_EQ(count(gallery_section("Samples", "", {picture, picture}).html, "data:image/png;base64,"), 2u);
}

TEST(GallerySection, RefusesPicturesOfOtherExtents) {
  Picture picture = sample_picture();
  picture.channels = 3;
  EXPECT_ERROR(gallery_section("", "", {picture}), ErrorCode::invalid_argument, "[28, 28, 3]");
}

// Each metric that was measured has a chart and columns; each evaluation a tile with its first one.
TEST(Report, ShowsWhateverATaskMeasures) {
  Report report{.summary = {.network = "dcgan"},
                .metrics = {{.name = "discriminator"}, {.name = "generator"}}};
  report.samples = "pictures";
  for (const int64_t step : {1, 2}) {
    report.history.samples.push_back({.step = step,
                                      .epoch = static_cast<double>(step),
                                      .measures = {{"discriminator", 0.5}, {"generator", 0.7}}});
  }
  report.history.epochs.push_back({.epoch = 1, .step = 2, .measures = {{"generator", 0.75}}});
  report.history.evaluations.push_back(
      {.name = "held_out", .step = 2, .epoch = 1, .results = {{"generator", 0.25}}});
  report.summary.evaluations = {{"held_out", {{"generator", 0.25}}}};
  const std::string page = render_report(report);
  for (const char* text : {"<h2>Training</h2>", "Discriminator", "<dt>Held out generator</dt><dd>0.2500</dd>",
                           "best 0.2500, epoch 1", "<th>Training generator</th><th>Held out generator</th>",
                           "<td>0.7500</td><td>0.2500</td>", "<th>Pictures/s</th>"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(page.find("accuracy"), std::string::npos);
  EXPECT_EQ(unbalanced(page), "");
}

TEST(Report, IsWrittenWholeOrNotAtAll) {
  const testing::TemporaryFolder folder;
  const Report report = sample_report();
  write_report(folder / "report.html", report);
  EXPECT_EQ(read_text_file(folder / "report.html"), render_report(report));
  EXPECT_ERROR(write_report(folder / "missing" / "report.html", report), ErrorCode::io, "missing");
}

}  // namespace
}  // namespace tessera::report
