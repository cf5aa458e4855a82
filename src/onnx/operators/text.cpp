// StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer.
#include <algorithm>
#include <map>
#include <set>

#include <re2/re2.h>

#include "onnx/lowering.h"
#include "onnx/utf8.h"

namespace tessera::onnx {
namespace {

void evaluate_concat(HostCall& call) {
  const TextTensor& a = call.text_tensor(0);
  const TextTensor& b = call.text_tensor(1);
  TextTensor result{broadcast_shapes(a.shape, b.shape), {}};
  const auto text = [&](const TextTensor& x, int64_t i) {
    return x.values[static_cast<size_t>(broadcast_source(x.shape, result.shape, i))];
  };
  for (int64_t i = 0; i < element_count(result.shape); ++i) result.values.push_back(text(a, i) + text(b, i));
  call.result(0, std::move(result));
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// At most so many parts, of which the last is the rest; runs of spaces where there is no delimiter.
std::vector<std::string> split(const std::string& text, const std::string& delimiter, int64_t most) {
  std::vector<std::string> parts;
  size_t place = 0;
  if (delimiter.empty()) {
    for (;;) {
      while (place < text.size() && is_space(text[place])) ++place;
      if (place == text.size()) return parts;
      size_t end = place;
      const bool is_last = std::ssize(parts) == most;
      while (end < text.size() && (is_last || !is_space(text[end]))) ++end;
      parts.push_back(text.substr(place, end - place));
      if (is_last) {
        while (!parts.back().empty() && is_space(parts.back().back())) parts.back().pop_back();
        return parts;
      }
      place = end;
    }
  }
  for (;;) {
    const size_t end = std::ssize(parts) == most ? std::string::npos : text.find(delimiter, place);
    parts.push_back(text.substr(place, end == std::string::npos ? end : end - place));
    if (end == std::string::npos) return parts;
    place = end + delimiter.size();
  }
}

void evaluate_split(HostCall& call) {
  const TextTensor& x = call.text_tensor(0);
  const int64_t most = call.integer("maxsplit", std::numeric_limits<int64_t>::max());
  std::vector<std::vector<std::string>> parts;
  std::vector<int64_t> counts;
  int64_t longest = 0;
  for (const std::string& text : x.values) {
    parts.push_back(split(text, call.text("delimiter", ""), most));
    counts.push_back(std::ssize(parts.back()));
    longest = std::max(longest, counts.back());
  }
  TextTensor result{x.shape, {}};
  result.shape.push_back(longest);
  for (std::vector<std::string>& row : parts) {
    row.resize(static_cast<size_t>(longest));
    result.values.insert(result.values.end(), row.begin(), row.end());
  }
  call.result(0, std::move(result));
  call.result(1, Tensor::from<int64_t>(x.shape, counts));
}

void evaluate_normalizer(HostCall& call) {
  const TextTensor& x = call.text_tensor(0);
  const bool is_row = x.shape.size() == 2;
  call.require(x.shape.size() == 1 || (is_row && x.shape[0] == 1), "it takes texts [C] or [1, C]");
  const std::string action = call.text("case_change_action", "NONE");
  call.require(action == "NONE" || action == "LOWER" || action == "UPPER",
               "there is no case_change_action '" + action + "'");
  const bool sensitive = call.integer("is_case_sensitive", 0) != 0;
  const auto folded = [&](const std::string& text) { return sensitive ? text : to_lower(text); };
  std::set<std::string> stopwords;
  for (const std::string& word : call.texts("stopwords")) stopwords.insert(folded(word));
  std::vector<std::string> kept;
  for (const std::string& text : x.values) {
    if (text.empty() || stopwords.count(folded(text)) != 0) continue;
    kept.push_back(action == "LOWER" ? to_lower(text) : action == "UPPER" ? to_upper(text) : text);
  }
  if (kept.empty()) kept.emplace_back();  // there is to be one at least
  const int64_t count = std::ssize(kept);
  call.result(0, TextTensor{is_row ? Shape{1, count} : Shape{count}, std::move(kept)});
}

void evaluate_regex(HostCall& call) {
  const TextTensor& x = call.text_tensor(0);
  re2::RE2::Options options;
  options.set_log_errors(false);
  const re2::RE2 pattern(call.text("pattern", ""), options);
  call.require(pattern.ok(), "its pattern is no regular expression: " + pattern.error());
  Tensor result(DataType::boolean, x.shape);
  for (size_t i = 0; i < x.values.size(); ++i)
    result.set(static_cast<int64_t>(i), re2::RE2::FullMatch(x.values[i], pattern) ? 1 : 0);
  call.result(0, result);
}

// Words are texts, or numbers as texts.
using Words = std::vector<std::string>;

Words words_of(const HostCall& call, const Item& item) {
  if (item.text() != nullptr) return item.text()->values;
  call.require(item.tensor() != nullptr, "it takes texts or integers");
  const Tensor numbers = item.tensor()->cast(DataType::int64);
  Words words;
  for (const int64_t number : numbers.data<int64_t>()) words.push_back(std::to_string(number));
  return words;
}

// The runs of words that count, with their places in the result.
std::map<Words, int64_t> grams_of(const HostCall& call) {
  Words pool = call.texts("pool_strings");
  for (const int64_t number : call.integers("pool_int64s")) pool.push_back(std::to_string(number));
  const std::vector<int64_t> begins = call.integers("ngram_counts");
  const std::vector<int64_t> places = call.integers("ngram_indexes");
  std::map<Words, int64_t> grams;
  size_t next = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t end = i + 1 < begins.size() ? begins[i + 1] : std::ssize(pool);
    const auto size = static_cast<int64_t>(i) + 1;
    call.require(begins[i] >= 0 && begins[i] <= end && end <= std::ssize(pool),
                 "ngram_counts are no places of its pool");
    for (int64_t at = begins[i]; at + size <= end; at += size, ++next) {
      call.require(next < places.size() && places[next] >= 0,
                   "ngram_indexes are not as many as its runs of words");
      if (size >= call.integer("min_gram_length") && size <= call.integer("max_gram_length"))
        grams[Words(pool.begin() + at, pool.begin() + at + size)] = static_cast<int64_t>(next);
    }
  }
  return grams;
}

void evaluate_tf_idf(HostCall& call) {
  const Words words = words_of(call, call.operand(0));
  const Shape& shape =
      call.operand(0).text() != nullptr ? call.operand(0).text()->shape : call.tensor(0).shape();
  call.require(shape.size() <= 2, "it takes words [C] or [B, C]");
  const std::map<Words, int64_t> grams = grams_of(call);
  const std::vector<int64_t> places = call.integers("ngram_indexes");
  const std::vector<double> weights = call.reals("weights");
  const std::string mode = call.text("mode", "TF");
  const int64_t width = places.empty() ? 0 : *std::max_element(places.begin(), places.end()) + 1;
  call.require(width <= (int64_t{1} << 28), "ngram_indexes are too large");
  const int64_t rows = shape.size() == 2 ? shape[0] : 1;
  const int64_t columns = rows == 0 ? 0 : std::ssize(words) / rows;
  Tensor result(DataType::fp32, shape.size() == 2 ? Shape{rows, width} : Shape{width});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t size = call.integer("min_gram_length");
         size <= std::min(columns, call.integer("max_gram_length")); ++size) {
      const int64_t farthest = size == 1 ? 1 : std::min(columns, call.integer("max_skip_count") + 1);
      for (int64_t distance = 1; distance <= farthest; ++distance) {
        for (int64_t start = 0; start + (size - 1) * distance < columns; ++start) {
          Words gram;
          for (int64_t i = 0; i < size; ++i)
            gram.push_back(words[static_cast<size_t>(row * columns + start + i * distance)]);
          const auto found = grams.find(gram);
          if (found == grams.end()) continue;
          const auto id = static_cast<size_t>(found->second);
          const int64_t place = row * width + places[id];
          const double weight = mode != "TF" && id < weights.size() ? weights[id] : 1;
          result.set(place, mode == "IDF" ? weight : result.at(place) + weight);
        }
      }
    }
  }
  call.result(0, result);
}

const RuleRegistrations kRegistration{
    {.name = "StringConcat", .evaluate = evaluate_concat},
    {.name = "StringSplit", .evaluate = evaluate_split},
    {.name = "StringNormalizer", .evaluate = evaluate_normalizer},
    {.name = "RegexFullMatch", .evaluate = evaluate_regex},
    {.name = "TfIdfVectorizer", .evaluate = evaluate_tf_idf},
};

}  // namespace
}  // namespace tessera::onnx
