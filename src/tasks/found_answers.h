// The likeliest answers out of the rows of questions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/tasks/question_answering.h"

namespace tessera::tasks {

class FoundAnswers {
 public:
  explicit FoundAnswers(std::shared_ptr<const AskedQuestions> asked);

  // Logits [batch, tokens] of a row of a batch, which is window number `window` of all.
  void add(int64_t window, const Tensor& starts, const Tensor& ends, int64_t row);
  bool has(int64_t question) const { return of(question).windows > 0; }
  // The part of its context; "" where that is likelier to hold none, or no row was seen.
  std::string answer(int64_t question) const;

  // Of each question what was found: fp64 [questions, kNumbers]; and as if that had been found here.
  Tensor state() const;
  void merge(const Tensor& state);

 private:
  static constexpr int64_t kNumbers = 5;

  struct Found {
    double windows = 0;  // rows that were seen
    double score = 0;    // the sum of the two logits
    double begin = 0;    // bytes of the context; 0 and 0: there was no room for an answer
    double end = 0;
    double none = 0;  // the score of the first token, the least of all rows
  };

  const Found& of(int64_t question) const { return found_.at(static_cast<size_t>(question)); }
  static void take(Found& known, const Found& other);

  std::shared_ptr<const AskedQuestions> asked_;
  std::vector<Found> found_;
};

}  // namespace tessera::tasks
