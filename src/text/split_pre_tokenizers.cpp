// Words between, around or of what a pattern finds.
#include <functional>
#include <utility>

#include <unicode/regex.h>
#include <unicode/utext.h>

#include "tessera/base/error.h"

#include "text/pre_tokenizer.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

// Puts parts together as a behavior says; they come in their order and cover the text.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, uint32_t base, Spans& words)
      : behavior_(behavior), base_(base), words_(words) {}

  void add(size_t begin, size_t end, bool found) {
    if (begin == end) return;
    const bool first = std::exchange(first_, false);
    const bool before = std::exchange(found_before_, found);
    if (behavior_ == SplitBehavior::removed && found) return;
    bool merged = false;
    if (behavior_ == SplitBehavior::contiguous) merged = found == before;
    if (behavior_ == SplitBehavior::merged_with_previous) merged = found && !before;
    if (behavior_ == SplitBehavior::merged_with_next) merged = !found && before;
    if (merged && !first) {
      words_.back().end = base_ + static_cast<uint32_t>(end);
    } else {
      words_.push_back({base_ + static_cast<uint32_t>(begin), base_ + static_cast<uint32_t>(end)});
    }
  }

 private:
  SplitBehavior behavior_;
  uint32_t base_;
  Spans& words_;
  bool first_ = true;
  bool found_before_ = false;
};

class CharacterPreTokenizer : public PreTokenizer {
 public:
  CharacterPreTokenizer(std::function<bool(char32_t)> finds, SplitBehavior behavior)
      : finds_(std::move(finds)), behavior_(behavior) {}

  void split(std::string_view text, uint32_t base, Spans& words) const override {
    Splitter splitter(behavior_, base, words);
    size_t other = 0;  // where those that it does not find begin
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      if (!finds_(next_character(text, at))) continue;
      splitter.add(other, begin, false);
      splitter.add(begin, at, true);
      other = at;
    }
    splitter.add(other, text.size(), false);
  }

 private:
  std::function<bool(char32_t)> finds_;
  SplitBehavior behavior_;
};

class WordPreTokenizer : public PreTokenizer {
 public:
  void split(std::string_view text, uint32_t base, Spans& words) const override {
    enum class Kind : uint8_t { space, word, other };
    Kind kind = Kind::space;
    size_t word = 0;
    const auto end_word = [&](size_t end) {
      if (kind != Kind::space)
        words.push_back({base + static_cast<uint32_t>(word), base + static_cast<uint32_t>(end)});
      word = end;
    };
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const char32_t character = next_character(text, at);
      const Kind present = is_word_character(character) ? Kind::word
                           : is_white_space(character)  ? Kind::space
                                                        : Kind::other;
      if (present != kind) end_word(begin);
      kind = present;
    }
    end_word(text.size());
  }
};

// ICU's \s leaves out U+000B and U+0085, which those for whom the files were written have in it.
std::string with_white_space(const std::string& pattern) {
  std::string result;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '\\') {
      result += pattern[i];
    } else if (next == 's' || next == 'S') {
      result += next == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      ++i;
    } else {
      result += pattern.substr(i++, 2);
    }
  }
  return result;
}

class PatternPreTokenizer : public PreTokenizer {
 public:
  PatternPreTokenizer(const std::string& pattern, SplitBehavior behavior, bool invert, std::string_view file)
      : behavior_(behavior), invert_(invert) {
    constexpr size_t kLongest = 4096;
    require(pattern.size() <= kLongest, ErrorCode::invalid_file,
            "{}: a pattern of {} bytes, expected at most {}", file, pattern.size(), kLongest);
    UParseError place{};
    UErrorCode error = U_ZERO_ERROR;
    pattern_.reset(
        icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(with_white_space(pattern)), 0, place, error));
    require(U_SUCCESS(error) != 0, ErrorCode::invalid_file,
            "{}: '{}' is no regular expression: {} at character {}", file, pattern, u_errorName(error),
            place.offset);
  }

  void split(std::string_view text, uint32_t base, Spans& words) const override {
    constexpr int32_t kSteps = 1'000'000;  // of ICU's; a pattern that needs more backtracks without end
    UErrorCode error = U_ZERO_ERROR;
    UText input = UTEXT_INITIALIZER;
    utext_openUTF8(&input, text.data(), static_cast<int64_t>(text.size()), &error);
    const std::unique_ptr<icu::RegexMatcher> matcher(pattern_->matcher(error));
    check(error);
    matcher->reset(&input);
    matcher->setTimeLimit(kSteps, error);
    Splitter splitter(behavior_, base, words);
    size_t done = 0;
    while (matcher->find(error) != 0) {
      const auto begin = static_cast<size_t>(matcher->start64(error));
      const auto end = static_cast<size_t>(matcher->end64(error));
      splitter.add(done, begin, invert_);
      splitter.add(begin, end, !invert_);
      done = end;
    }
    check(error);
    splitter.add(done, text.size(), invert_);
    utext_close(&input);
  }

 private:
  static void check(UErrorCode error) {
    require(U_SUCCESS(error) != 0, ErrorCode::invalid_argument,
            "the tokenizer's pattern gives up on this text: {}", u_errorName(error));
  }

  std::unique_ptr<icu::RegexPattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

}  // namespace

std::unique_ptr<PreTokenizer> white_space_pre_tokenizer() {
  return std::make_unique<CharacterPreTokenizer>(is_white_space, SplitBehavior::removed);
}

std::unique_ptr<PreTokenizer> word_pre_tokenizer() {
  return std::make_unique<WordPreTokenizer>();
}

std::unique_ptr<PreTokenizer> punctuation_pre_tokenizer(SplitBehavior behavior) {
  return std::make_unique<CharacterPreTokenizer>(bert::is_punctuation, behavior);
}

std::unique_ptr<PreTokenizer> digit_pre_tokenizer(bool single) {
  return std::make_unique<CharacterPreTokenizer>(
      is_number_of_any, single ? SplitBehavior::isolated : SplitBehavior::contiguous);
}

std::unique_ptr<PreTokenizer> pattern_pre_tokenizer(const std::string& pattern, SplitBehavior behavior,
                                                    bool invert, std::string_view file) {
  return std::make_unique<PatternPreTokenizer>(pattern, behavior, invert, file);
}

}  // namespace tessera::text
