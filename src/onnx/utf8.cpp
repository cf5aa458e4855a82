#include "onnx/utf8.h"

#include <clocale>
#include <cwctype>

namespace tessera::onnx {
namespace {

// The letter at `place`, which moves after it; its bytes as they are where they are no letter.
char32_t next_letter(const std::string& text, size_t& place) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(place);
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || place + length > text.size()) return 0xdc00u + byte(place++);
  char32_t letter = length == 1 ? first : first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(place + i) & 0xc0) != 0x80) return 0xdc00u + byte(place++);
    letter = (letter << 6) | (byte(place + i) & 0x3fu);
  }
  place += length;
  return letter;
}

void append(std::string& text, char32_t letter) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80u | ((letter >> shift) & 0x3fu)); };
  if (letter >= 0xdc80u && letter <= 0xdcffu) {
    text += static_cast<char>(letter - 0xdc00u);
  } else if (letter < 0x80) {
    text += static_cast<char>(letter);
  } else if (letter < 0x800) {
    text += static_cast<char>(0xc0u | (letter >> 6));
    tail(0);
  } else if (letter < 0x10000) {
    text += static_cast<char>(0xe0u | (letter >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0u | (letter >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string changed(const std::string& text, wint_t (*change)(wint_t, locale_t)) {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::string result;
  for (size_t place = 0; place < text.size();) {
    const char32_t letter = next_letter(text, place);
    const bool is_byte = letter >= 0xdc80u && letter <= 0xdcffu;
    append(result, is_byte || locale == nullptr ? letter : static_cast<char32_t>(change(letter, locale)));
  }
  return result;
}

}  // namespace

std::string to_upper(const std::string& text) {
  return changed(text, towupper_l);
}

std::string to_lower(const std::string& text) {
  return changed(text, towlower_l);
}

}  // namespace tessera::onnx
