#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/text/training.h"

#include "text/byte_alphabet.h"
#include "text/learn_merges.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

constexpr std::string_view kContinuing = "##";

using WordCounts = std::unordered_map<std::string, int64_t>;

std::vector<std::string> special_tokens_of(const VocabularyOptions& options) {
  if (!options.special_tokens.empty()) return options.special_tokens;
  if (options.kind == VocabularyKind::byte_pairs) return {"<|endoftext|>"};
  return {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
}

void check(const VocabularyOptions& options) {
  const auto code = ErrorCode::invalid_argument;
  const bool bytes = options.kind == VocabularyKind::byte_pairs;
  const int64_t least = std::ssize(options.special_tokens) + (bytes ? 256 : 1);
  constexpr int64_t kLargest = 4'000'000;
  require(options.size >= least && options.size <= kLargest, code,
          "a vocabulary of {} tokens, expected {} (the special tokens{}) to {}", options.size, least,
          bytes ? " and the 256 bytes" : " and a character", kLargest);
  require(options.minimum_frequency >= 1, code, "minimum_frequency is {}, expected 1 or more",
          options.minimum_frequency);
  require(options.alphabet >= 1, code, "an alphabet of {} characters, expected 1 or more", options.alphabet);
  const std::set<std::string> different(options.special_tokens.begin(), options.special_tokens.end());
  require(std::ssize(different) == std::ssize(options.special_tokens) && !different.contains(""), code,
          "special tokens must be different and not empty");
  require(bytes || different.contains("[UNK]"), code,
          "the special tokens of a wordpiece vocabulary hold no [UNK]");
}

// Ids of tokens in the order in which they are first asked for.
class TokenIds {
 public:
  uint32_t of(const std::string& token) {
    const auto [entry, is_new] = ids_.emplace(token, static_cast<uint32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(token);
    return entry->second;
  }
  bool has(const std::string& token) const { return ids_.contains(token); }
  const std::string& token(uint32_t id) const { return tokens_[id]; }
  int64_t size() const { return std::ssize(tokens_); }
  std::vector<std::string> take() { return std::move(tokens_); }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<std::string> tokens_;
};

std::string text_of(char32_t character) {
  std::string text;
  append_character(text, character);
  return text;
}

// The most frequent characters, by their numbers.
std::set<char32_t> alphabet_of(const WordCounts& words, int64_t limit) {
  std::unordered_map<char32_t, int64_t> counts;
  for (const auto& [word, count] : words) {
    for (size_t at = 0; at < word.size();) counts[next_character(word, at)] += count;
  }
  std::vector<std::pair<char32_t, int64_t>> all(counts.begin(), counts.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (std::ssize(all) > limit) all.resize(static_cast<size_t>(limit));
  std::set<char32_t> alphabet;
  for (const auto& [character, count] : all) alphabet.insert(character);
  return alphabet;
}

// Characters, those within words marked as such; what the alphabet does not have is left out.
std::vector<CountedWord> characters_of(const WordCounts& words, const std::set<char32_t>& alphabet,
                                       TokenIds& ids) {
  std::set<char32_t> inside;
  for (const auto& [word, count] : words) {
    for (size_t at = character_length(word[0]); at < word.size();) inside.insert(next_character(word, at));
  }
  for (const char32_t character : alphabet) ids.of(text_of(character));
  for (const char32_t character : inside) {
    if (alphabet.contains(character)) ids.of(std::string(kContinuing) + text_of(character));
  }
  std::vector<CountedWord> result;
  for (const auto& [word, count] : words) {
    CountedWord& made = result.emplace_back(CountedWord{.count = count});
    for (size_t at = 0; at < word.size();) {
      const bool first = at == 0;
      const char32_t character = next_character(word, at);
      if (!alphabet.contains(character)) continue;
      made.symbols.push_back(ids.of((first ? "" : std::string(kContinuing)) + text_of(character)));
    }
  }
  return result;
}

std::vector<CountedWord> bytes_of(const WordCounts& words, TokenIds& ids) {
  std::vector<char32_t> alphabet(byte_alphabet().begin(), byte_alphabet().end());
  std::sort(alphabet.begin(), alphabet.end());
  for (const char32_t character : alphabet) ids.of(text_of(character));
  std::vector<CountedWord> result;
  for (const auto& [word, count] : words) {
    CountedWord& made = result.emplace_back(CountedWord{.count = count});
    for (const char byte : word) made.symbols.push_back(ids.of(in_alphabet({&byte, 1})));
  }
  return result;
}

}  // namespace

struct VocabularyLearner::State {
  explicit State(VocabularyOptions given) : options(std::move(given)) {
    if (options.kind == VocabularyKind::byte_pairs) {
      pre_tokenizer = byte_level_pre_tokenizer();
      return;
    }
    normalizer = bert_normalizer({.strip_accents = options.lower_case, .lower_case = options.lower_case});
    pre_tokenizer = bert_pre_tokenizer();
  }

  const VocabularyOptions options;
  std::unique_ptr<Normalizer> normalizer;  // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::mutex mutex;  // guards what follows
  WordCounts words;
};

VocabularyLearner::VocabularyLearner(VocabularyOptions options) {
  options.special_tokens = special_tokens_of(options);
  check(options);
  state_ = std::make_unique<State>(std::move(options));
}

VocabularyLearner::~VocabularyLearner() = default;

void VocabularyLearner::add(std::string_view text) {
  AlignedText present{.bytes = well_formed(text)};
  if (state_->normalizer != nullptr) {
    AlignedText result;
    state_->normalizer->apply(present, result);
    present = std::move(result);
  }
  Spans words;
  state_->pre_tokenizer->split(present.bytes, 0, words);
  WordCounts counts;
  for (const Span& word : words) ++counts[present.bytes.substr(word.begin, word.end - word.begin)];
  const std::lock_guard lock(state_->mutex);
  for (const auto& [word, count] : counts) state_->words[word] += count;
}

LearnedVocabulary VocabularyLearner::learn() const {
  const VocabularyOptions& options = state_->options;
  const WordCounts& words = state_->words;
  require(!words.empty(), ErrorCode::invalid_argument,
          "the texts that a vocabulary is to be learned from hold no word");
  const bool bytes = options.kind == VocabularyKind::byte_pairs;
  TokenIds ids;
  for (const std::string& token : options.special_tokens) ids.of(token);
  std::vector<CountedWord> sequences =
      bytes ? bytes_of(words, ids) : characters_of(words, alphabet_of(words, options.alphabet), ids);
  const auto join = [&](SymbolPair pair) -> int64_t {
    const std::string& right = ids.token(pair.second);
    const bool continues = !bytes && right.starts_with(kContinuing);
    const std::string made = ids.token(pair.first) + (continues ? right.substr(kContinuing.size()) : right);
    if (ids.size() >= options.size) return -1;
    return ids.of(made);
  };
  const std::vector<SymbolPair> merges = learn_merges(std::move(sequences), options.minimum_frequency, join);
  LearnedVocabulary result{.options = options};
  for (const auto& [left, right] : merges) result.merges.emplace_back(ids.token(left), ids.token(right));
  result.tokens = ids.take();
  return result;
}

}  // namespace tessera::text
