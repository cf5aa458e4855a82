#include <algorithm>
#include <map>

#include "tessera/tasks/question_answering.h"
#include "tessera/text/compared_words.h"

namespace tessera::tasks {
namespace {

AnswerScore score(const std::vector<std::string>& said, const std::vector<std::string>& right) {
  const double exact = said == right ? 1 : 0;
  if (said.empty() || right.empty()) return {exact, exact};
  std::map<std::string, int64_t> left;
  for (const std::string& word : right) ++left[word];
  int64_t shared = 0;
  for (const std::string& word : said) shared += left[word]-- > 0 ? 1 : 0;
  return {exact, 2.0 * static_cast<double>(shared) / static_cast<double>(said.size() + right.size())};
}

}  // namespace

AnswerScore answer_score(const std::string& said, const std::vector<Answer>& answers) {
  const std::vector<std::string> words = text::compared_words(said);
  if (answers.empty()) return score(words, {});
  AnswerScore best;
  for (const Answer& answer : answers) {
    const AnswerScore one = score(words, text::compared_words(answer.text));
    best.exact = std::max(best.exact, one.exact);
    best.f1 = std::max(best.f1, one.f1);
  }
  return best;
}

}  // namespace tessera::tasks
