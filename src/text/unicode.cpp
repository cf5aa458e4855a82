#include "text/unicode.h"

#include <array>
#include <cstring>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

namespace tessera::text {
namespace {

// ICU's argument.
UChar32 code(char32_t character) {
  return static_cast<UChar32>(character);
}

uint32_t category(char32_t character) {
  return U_MASK(u_charType(code(character)));
}

// The tables that the tokenizers in use were made with know no later characters, and six by another category.
uint32_t category_of_unicode_8(char32_t character) {
  switch (character) {
    case 0x1734:
      return U_GC_MN_MASK;
    case 0x1885:
    case 0x1886:
      return U_GC_LO_MASK;
    case 0x166D:
    case 0x111C9:
      return U_GC_PO_MASK;
    case 0xA9BD:
      return U_GC_MC_MASK;
    default:
      break;
  }
  UVersionInfo age{};
  u_charAge(code(character), age);
  return age[0] > 8 ? U_GC_CN_MASK : category(character);
}

bool is_ascii(std::string_view text, size_t from) {
  constexpr size_t kWord = sizeof(uint64_t);
  if (text.size() - from < kWord) return false;
  uint64_t word = 0;
  std::memcpy(&word, text.data() + from, kWord);
  return (word & 0x8080808080808080u) == 0;
}

}  // namespace

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += (static_cast<uint8_t>(byte) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

void append_character(std::string& text, char32_t character) {
  std::array<uint8_t, U8_MAX_LENGTH> bytes{};
  size_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, character);
  text.append(reinterpret_cast<const char*>(bytes.data()), length);
}

WellFormed well_formed_part(std::string_view text, size_t from) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int64_t>(text.size());
  auto at = static_cast<int64_t>(from);
  while (at < size) {
    if (is_ascii(text, static_cast<size_t>(at))) {
      at += static_cast<int64_t>(sizeof(uint64_t));
      continue;
    }
    const int64_t begin = at;
    UChar32 character = 0;
    U8_NEXT(bytes, at, size, character);
    if (character < 0) return {static_cast<size_t>(begin) - from, static_cast<size_t>(at - begin)};
  }
  return {text.size() - from, 0};
}

std::string well_formed(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const WellFormed part = well_formed_part(text, at);
    result.append(text, at, part.good);
    if (part.bad > 0) append_character(result, kReplacement);
    at += part.good + part.bad;
  }
  return result;
}

bool is_white_space(char32_t character) {
  if (character < 0x80) return character == ' ' || (character >= '\t' && character <= '\r');
  return u_isUWhiteSpace(code(character)) != 0;
}

bool is_letter_of_any(char32_t character) {
  return (category(character) & U_GC_L_MASK) != 0;
}

bool is_number_of_any(char32_t character) {
  return (category(character) & U_GC_N_MASK) != 0;
}

bool is_mark_of_any(char32_t character) {
  return (category(character) & U_GC_M_MASK) != 0;
}

bool is_word_character(char32_t character) {
  return u_isUAlphabetic(code(character)) != 0 ||
         u_hasBinaryProperty(code(character), UCHAR_JOIN_CONTROL) != 0 ||
         (category(character) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

char32_t lower_case(char32_t character) {
  return static_cast<char32_t>(u_tolower(code(character)));
}

namespace bert {

bool is_punctuation(char32_t character) {
  if (character < 0x80) {
    return (character >= '!' && character <= '/') || (character >= ':' && character <= '@') ||
           (character >= '[' && character <= '`') || (character >= '{' && character <= '~');
  }
  return (category_of_unicode_8(character) & U_GC_P_MASK) != 0;
}

bool is_control(char32_t character) {
  if (character == '\t' || character == '\n' || character == '\r') return false;
  if (character < 0x80) return character < ' ' || character == 0x7F;
  return (category_of_unicode_8(character) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

bool is_accent(char32_t character) {
  return character >= 0x300 && (category_of_unicode_8(character) & U_GC_MN_MASK) != 0;
}

bool is_ideograph(char32_t character) {
  struct Block {
    char32_t first;
    char32_t last;
  };
  constexpr Block kBlocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                               {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                               {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  for (const Block& block : kBlocks) {
    if (character >= block.first && character <= block.last) return true;
  }
  return false;
}

}  // namespace bert
}  // namespace tessera::text
