// Cutting a text into words, of which each becomes tokens alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/text/tokenizer.h"

namespace tessera::text {

using Spans = std::vector<Span>;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // The words of well-formed text that is not empty, after those that are there, in places that begin at
  // `base`.
  virtual void split(std::string_view text, uint32_t base, Spans& words) const = 0;
};

// White space is left out, each punctuation mark is a word.
std::unique_ptr<PreTokenizer> bert_pre_tokenizer();
// GPT-2's pattern: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::unique_ptr<PreTokenizer> byte_level_pre_tokenizer();

// What becomes of the parts that a pattern finds.
enum class SplitBehavior : uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous  // neighbors that it finds, or that it does not find, stay together
};

std::unique_ptr<PreTokenizer> white_space_pre_tokenizer();  // runs of other characters
std::unique_ptr<PreTokenizer> word_pre_tokenizer();         // \w+|[^\w\s]+
std::unique_ptr<PreTokenizer> punctuation_pre_tokenizer(SplitBehavior behavior);
std::unique_ptr<PreTokenizer> digit_pre_tokenizer(bool single);  // each a word, or runs of them
// By a regular expression, or by what lies between what it finds. Throws Error(invalid_file) naming `file`
// for one that is none.
std::unique_ptr<PreTokenizer> pattern_pre_tokenizer(const std::string& pattern, SplitBehavior behavior,
                                                    bool invert, std::string_view file);

}  // namespace tessera::text
