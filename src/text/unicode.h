// Characters of Unicode, in UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::text {

inline constexpr char32_t kReplacement = 0xFFFD;

// The character at `at`, which is moved after it. The text must be well-formed.
inline char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t index) { return static_cast<uint8_t>(text[index]); };
  const uint8_t lead = byte(at++);
  if (lead < 0x80) return lead;
  const auto more = [&] { return static_cast<char32_t>(byte(at++) & 0x3F); };
  if (lead < 0xE0) return static_cast<char32_t>(lead & 0x1F) << 6 | more();
  if (lead < 0xF0) {
    const char32_t high = static_cast<char32_t>(lead & 0x0F) << 12 | more() << 6;
    return high | more();
  }
  char32_t high = static_cast<char32_t>(lead & 0x07) << 18 | more() << 12;
  high |= more() << 6;
  return high | more();
}

// Where the character that ends at `end` begins. The text must be well-formed.
inline size_t character_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while ((static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

// Bytes of a character, by its first.
inline size_t character_length(char first) {
  const auto lead = static_cast<uint8_t>(first);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

size_t count_characters(std::string_view text);
void append_character(std::string& text, char32_t character);

// How many bytes from `from` on are well-formed UTF-8, and how many after them are to be replaced together.
struct WellFormed {
  size_t good = 0;
  size_t bad = 0;  // 0 at the end of the text
};
WellFormed well_formed_part(std::string_view text, size_t from);
// With U+FFFD in the place of what is none.
std::string well_formed(std::string_view text);

bool is_white_space(char32_t character);    // the property White_Space
bool is_letter_of_any(char32_t character);  // general category L
bool is_number_of_any(char32_t character);  // general category N
bool is_mark_of_any(char32_t character);    // general category M
bool is_word_character(
    char32_t character);  // \w of regular expressions (Unicode Technical Standard 18, annex C)
// One character by one, as without knowledge of its neighbors; U+0130 alone becomes two.
char32_t lower_case(char32_t character);

// As BERT's tokenizers count them, by Unicode 8.
namespace bert {
bool is_punctuation(char32_t character);
bool is_control(char32_t character);
bool is_accent(char32_t character);  // a mark without width
bool is_ideograph(char32_t character);
}  // namespace bert

}  // namespace tessera::text
