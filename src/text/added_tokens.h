// Tokens that are found in the text itself, before it is cut into words: special ones, and those that users
// added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "text/byte_trie.h"

namespace tessera::text {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool single_word = false;  // only where no word character stands beside it
  bool left_strip = false;   // takes the white space on that side along
  bool right_strip = false;
  bool normalized = false;  // found in the text after normalization
};

// A part of a text: a token, or what lies between two.
struct TextPart {
  int32_t id;  // -1: text
  uint32_t begin;
  uint32_t end;
};

class AddedTokens {
 public:
  // `pattern` is what stands in the text: the content, normalized where the token is.
  void add(const AddedToken& token, std::string_view pattern);

  bool is_special(int32_t id) const { return special_.contains(id); }
  // Whether any is found in a text of that kind.
  bool any(bool normalized) const { return normalized ? any_normalized_ : any_raw_; }
  // The parts of well-formed text, after those that are there; of tokens that begin at one place the longest.
  void find(std::string_view text, bool normalized, std::vector<TextPart>& parts) const;

 private:
  std::vector<AddedToken> tokens_;
  ByteTrie raw_;  // places in tokens_
  ByteTrie normalized_;
  bool any_raw_ = false;
  bool any_normalized_ = false;
  std::unordered_set<int32_t> special_;
};

}  // namespace tessera::text
