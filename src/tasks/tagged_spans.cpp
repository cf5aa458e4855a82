// What a tagger found, in words and spans, and how much of it is right.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/tasks/text_tagging.h"

#include "tasks/likeliest.h"

namespace tessera::tasks {
namespace {

// The words' tags of a row: those of tokens whose label counts.
std::vector<int64_t> word_places(const Tensor& labels, int64_t row) {
  const int64_t tokens = labels.shape()[1];
  std::vector<int64_t> places;
  for (int64_t place = row * tokens; place < (row + 1) * tokens; ++place) {
    if (labels.at(place) >= 0) places.push_back(place);
  }
  return places;
}

class TaggingEvaluator : public train::Evaluator {
 public:
  explicit TaggingEvaluator(std::vector<std::string> labels) : labels_(std::move(labels)) {}

  void add(const data::Batch& batch, const Feeds& outputs) override {
    const Tensor& truth = batch.fields.at("labels");
    const Tensor& said = outputs.at("tags");
    for (int64_t row = 0; row < batch.samples; ++row) {
      std::vector<std::string> tags;
      std::vector<std::string> found;
      for (const int64_t place : word_places(truth, row)) {
        tags.push_back(label(truth, place));
        found.push_back(label(said, place));
        sums_[kHits] += tags.back() == found.back() ? 1 : 0;
      }
      sums_[kLosses] += outputs.at("losses").at(row);
      sums_[kWords] += static_cast<double>(tags.size());
      count_spans(tagged_spans(tags), tagged_spans(found));
    }
  }
  train::Numbers results() const override {
    const auto share = [&](size_t part, size_t whole) {
      return sums_[whole] == 0 ? 0 : sums_[part] / sums_[whole];
    };
    const double both = sums_[kSpans] + sums_[kFound];
    return {{"loss", share(kLosses, kWords)},
            {"accuracy", share(kHits, kWords)},
            {"precision", share(kRight, kFound)},
            {"recall", share(kRight, kSpans)},
            {"f1", both == 0 ? 0 : 2 * sums_[kRight] / both}};
  }
  Feeds state() const override {
    return {{"spans", Tensor::from<double>({kSums}, {sums_.begin(), sums_.end()})}};
  }
  void merge(const Feeds& state) override {
    const Tensor& others = train::state_tensor(state, "spans", DataType::fp64);
    require(others.size() == kSums, ErrorCode::invalid_argument, "{} sums, expected {}", others.size(),
            kSums);
    for (size_t i = 0; i < kSums; ++i) sums_[i] += others.at(static_cast<int64_t>(i));
  }

 private:
  // Places among the sums, and how many they are.
  static constexpr size_t kLosses = 0;
  static constexpr size_t kHits = 1;
  static constexpr size_t kWords = 2;
  static constexpr size_t kRight = 3;
  static constexpr size_t kFound = 4;
  static constexpr size_t kSpans = 5;
  static constexpr size_t kSums = 6;

  const std::string& label(const Tensor& numbers, int64_t place) const {
    return labels_.at(static_cast<size_t>(numbers.at(place)));
  }
  void count_spans(const std::vector<TaggedSpan>& spans, const std::vector<TaggedSpan>& found) {
    for (const TaggedSpan& one : found) sums_[kRight] += std::ranges::count(spans, one) > 0 ? 1 : 0;
    sums_[kFound] += static_cast<double>(found.size());
    sums_[kSpans] += static_cast<double>(spans.size());
  }

  std::vector<std::string> labels_;
  std::array<double, kSums> sums_{};
};

class TagText : public train::PredictionText {
 public:
  TagText(const std::vector<std::string>& labels, const std::vector<TaggedText>& texts)
      : labels_(labels), texts_(texts) {}

  std::string summary() const override {
    return tagged_ == 0 ? "" : fmt::format("{} of {} words right\n", right_, tagged_);
  }

 private:
  std::string example(const train::Example& one) override {
    const TaggedText& text = texts_.at(static_cast<size_t>(one.number));
    std::vector<std::string> tags;
    for (const int64_t place : word_places(one.batch.fields.at("labels"), one.row)) {
      const int64_t said = likeliest_class(one.outputs.at("logits"), place).number;
      if (!text.tags.empty()) {
        right_ += said == text.tags[tags.size()] ? 1 : 0;
        ++tagged_;
      }
      tags.push_back(labels_.at(static_cast<size_t>(said)));
    }
    return fmt::format("text {}: {}\n", one.number, with_spans(text.words, tagged_spans(tags)));
  }

  // "[TYPE: two words]" in the place of the words.
  static std::string with_spans(const std::vector<std::string>& words, const std::vector<TaggedSpan>& spans) {
    std::string told;
    auto next = spans.begin();
    for (int64_t word = 0; word < std::ssize(words); ++word) {
      if (word > 0) told += ' ';
      if (next != spans.end() && next->begin == word) told += '[' + next->type + ": ";
      told += words[static_cast<size_t>(word)];
      if (next == spans.end() || next->end != word + 1) continue;
      told += ']';
      ++next;
    }
    return told;
  }

  std::vector<std::string> labels_;
  std::vector<TaggedText> texts_;
  int64_t right_ = 0;
  int64_t tagged_ = 0;
};

}  // namespace

std::vector<TaggedSpan> tagged_spans(const std::vector<std::string>& tags) {
  std::vector<TaggedSpan> spans;
  std::optional<std::string> open;  // the type that a word with I- goes on with
  for (int64_t word = 0; word < std::ssize(tags); ++word) {
    const std::string& tag = tags[static_cast<size_t>(word)];
    const bool begins = tag.starts_with("B-");
    const bool is_inside = tag.starts_with("I-");
    const std::string type = begins || is_inside ? tag.substr(2) : tag;
    if (is_inside && open == type) {
      spans.back().end = word + 1;
      continue;
    }
    open.reset();
    if (tag == "O") continue;
    spans.push_back({.begin = word, .end = word + 1, .type = type});
    if (begins || is_inside) open = type;
  }
  return spans;
}

train::EvaluatorMaker text_tagging_evaluator(std::vector<std::string> labels) {
  return [labels = std::move(labels)] { return std::make_unique<TaggingEvaluator>(labels); };
}

train::PredictionTextMaker text_tagging_text(std::vector<std::string> labels, std::vector<TaggedText> texts) {
  return [labels = std::move(labels), texts = std::move(texts)] {
    return std::make_unique<TagText>(labels, texts);
  };
}

}  // namespace tessera::tasks
