#include "tasks/found_answers.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "tessera/base/error.h"

namespace tessera::tasks {

FoundAnswers::FoundAnswers(std::shared_ptr<const AskedQuestions> asked)
    : asked_(std::move(asked)), found_(asked_->questions.size()) {}

void FoundAnswers::add(int64_t window, const Tensor& starts, const Tensor& ends, int64_t row) {
  const QuestionWindow& one = asked_->windows.at(static_cast<size_t>(window));
  const int64_t tokens = starts.shape()[1];
  const auto start = [&](int64_t place) { return starts.at(row * tokens + place); };
  const auto end = [&](int64_t place) { return ends.at(row * tokens + place); };
  Found best{.windows = 1, .score = -std::numeric_limits<double>::infinity(), .none = start(0) + end(0)};
  const int64_t count = std::ssize(one.places);
  for (int64_t first = 0; first < count; ++first) {
    for (int64_t last = first; last < std::min(first + asked_->search.longest, count); ++last) {
      const double score = start(one.first + first) + end(one.first + last);
      if (!(score > best.score)) continue;
      best.score = score;
      best.begin = one.places[static_cast<size_t>(first)].begin;
      best.end = one.places[static_cast<size_t>(last)].end;
    }
  }
  take(found_.at(static_cast<size_t>(one.question)), best);
}

// Whichever comes first: of equal scores the earlier place counts.
void FoundAnswers::take(Found& known, const Found& other) {
  if (other.windows == 0) return;
  const auto rank = [](const Found& one) { return std::tuple(one.score, -one.begin, -one.end); };
  if (known.windows == 0) {
    known = other;
    return;
  }
  const double windows = known.windows + other.windows;
  const double none = std::min(known.none, other.none);
  if (rank(other) > rank(known)) known = other;
  known.windows = windows;
  known.none = none;
}

std::string FoundAnswers::answer(int64_t question) const {
  const Found& found = of(question);
  if (found.windows == 0 || (asked_->search.may_lack && found.none > found.score)) return "";
  const std::string& context = asked_->questions[static_cast<size_t>(question)].context;
  const auto begin = static_cast<size_t>(found.begin);
  return context.substr(begin, static_cast<size_t>(found.end) - begin);
}

Tensor FoundAnswers::state() const {
  std::vector<double> numbers;
  for (const Found& one : found_)
    numbers.insert(numbers.end(), {one.windows, one.score, one.begin, one.end, one.none});
  return Tensor::from<double>({std::ssize(found_), kNumbers}, numbers);
}

void FoundAnswers::merge(const Tensor& state) {
  require(state.shape() == Shape({std::ssize(found_), kNumbers}), ErrorCode::invalid_argument,
          "answers of {}, expected {} questions", to_string(state.shape()), found_.size());
  for (size_t i = 0; i < found_.size(); ++i) {
    const auto at = [&](int64_t number) { return state.at(static_cast<int64_t>(i) * kNumbers + number); };
    take(found_[i], {.windows = at(0), .score = at(1), .begin = at(2), .end = at(3), .none = at(4)});
  }
}

}  // namespace tessera::tasks
