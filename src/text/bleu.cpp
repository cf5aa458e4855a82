#include "tessera/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tessera/base/error.h"

namespace tessera::text {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Signs of ASCII that are words of their own wherever they stand.
bool is_sign(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= '!' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

bool is_point(char c) {
  return c == '.' || c == ',';
}

void replace(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

// As many bytes as a white space of Unicode has that begins there, or 0.
size_t space_at(std::string_view text, size_t at) {
  const char c = text[at];
  if (c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f')) return 1;
  for (const std::string_view space :
       {"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
        "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"})
    if (text.substr(at).starts_with(space)) return space.size();
  return 0;
}

// Each pass goes over the text from the left, as a replacement by a regular expression does: what it has
// replaced it does not look at again.
std::string signs_apart(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (is_sign(c)) {
      result += {' ', c, ' '};
    } else {
      result += c;
    }
  }
  return result;
}

template <typename First, typename Second>
std::string pairs_apart(const std::string& text, const First& is_first, const Second& is_second, bool before,
                        bool after) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (at + 1 < text.size() && is_first(text[at]) && is_second(text[at + 1])) {
      if (before) result += ' ';
      result += text[at];
      result += ' ';
      result += text[at + 1];
      if (after) result += ' ';
      at += 2;
    } else {
      result += text[at++];
    }
  }
  return result;
}

using Runs = std::map<std::string, int64_t>;

// How often each run of so many words comes.
Runs runs_of(const std::vector<std::string>& words, size_t order) {
  Runs runs;
  for (size_t first = 0; first + order <= words.size(); ++first) {
    std::string run;
    for (size_t i = first; i < first + order; ++i) run += words[i] + ' ';
    ++runs[run];
  }
  return runs;
}

}  // namespace

std::vector<std::string> bleu_words(std::string_view line) {
  std::string text(line);
  replace(text, "<skipped>", "");
  replace(text, "-\n", "");
  replace(text, "\n", " ");
  replace(text, "&quot;", "\"");
  replace(text, "&amp;", "&");
  replace(text, "&lt;", "<");
  replace(text, "&gt;", ">");
  const auto is_other = [](char c) { return !is_digit(c); };
  const auto is_dash = [](char c) { return c == '-'; };
  text = signs_apart(" " + text + " ");
  text = pairs_apart(text, is_other, is_point, false, true);
  text = pairs_apart(text, is_point, is_other, true, false);
  text = pairs_apart(text, is_digit, is_dash, false, true);
  std::vector<std::string> words;
  std::string word;
  for (size_t at = 0; at < text.size();) {
    if (const size_t bytes = space_at(text, at); bytes > 0) {
      if (!word.empty()) words.push_back(std::exchange(word, {}));
      at += bytes;
    } else {
      word += text[at++];
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

void BleuCounts::add(std::string_view said, std::string_view right) {
  const std::vector<std::string> words = bleu_words(said), expected = bleu_words(right);
  said_words_ += std::ssize(words);
  right_words_ += std::ssize(expected);
  for (size_t order = 1; order <= kOrders; ++order) {
    const Runs there = runs_of(expected, order);
    for (const auto& [run, count] : runs_of(words, order)) {
      all_[order - 1] += count;
      if (const auto found = there.find(run); found != there.end())
        right_[order - 1] += std::min(count, found->second);
    }
  }
}

void BleuCounts::add(const BleuCounts& others) {
  for (size_t i = 0; i < kOrders; ++i) {
    right_[i] += others.right_[i];
    all_[i] += others.all_[i];
  }
  said_words_ += others.said_words_;
  right_words_ += others.right_words_;
}

double BleuCounts::score() const {
  if (right_[0] == 0) return 0;
  double logarithms = 0, smoothing = 1;
  for (size_t i = 0; i < kOrders; ++i) {
    if (all_[i] == 0) return 0;
    // What never was right counts half of one, the next such a quarter.
    if (right_[i] == 0) smoothing /= 2;
    const double right = right_[i] == 0 ? smoothing : static_cast<double>(right_[i]);
    logarithms += std::log(right / static_cast<double>(all_[i]));
  }
  const double missing = static_cast<double>(right_words_) / static_cast<double>(said_words_) - 1;
  return 100 * std::exp(logarithms / static_cast<double>(kOrders) - std::max(missing, 0.0));
}

std::vector<int64_t> BleuCounts::numbers() const {
  std::vector<int64_t> numbers(right_.begin(), right_.end());
  numbers.insert(numbers.end(), all_.begin(), all_.end());
  numbers.push_back(said_words_);
  numbers.push_back(right_words_);
  return numbers;
}

BleuCounts BleuCounts::of_numbers(const std::vector<int64_t>& numbers) {
  require(numbers.size() == 2 * kOrders + 2, ErrorCode::invalid_argument, "{} counts of BLEU, expected {}",
          numbers.size(), 2 * kOrders + 2);
  BleuCounts counts;
  std::copy_n(numbers.begin(), kOrders, counts.right_.begin());
  std::copy_n(numbers.begin() + kOrders, kOrders, counts.all_.begin());
  counts.said_words_ = numbers[2 * kOrders];
  counts.right_words_ = numbers[2 * kOrders + 1];
  return counts;
}

}  // namespace tessera::text
