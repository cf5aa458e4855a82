#include "text/byte_alphabet.h"

#include "text/unicode.h"

namespace tessera::text {
namespace {

bool is_visible(char32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) alphabet[byte] = is_visible(byte) ? byte : next++;
  return alphabet;
}

// By character: the byte and one, 0 for none.
using Bytes = std::array<uint16_t, 0x180>;
Bytes make_bytes() {
  Bytes bytes{};
  for (uint16_t byte = 0; byte < 256; ++byte) bytes[byte_alphabet()[byte]] = byte + 1;
  return bytes;
}

}  // namespace

const std::array<char32_t, 256>& byte_alphabet() {
  static const std::array<char32_t, 256> alphabet = make_alphabet();
  return alphabet;
}

std::string in_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_character(text, byte_alphabet()[static_cast<uint8_t>(byte)]);
  return text;
}

std::optional<std::string> from_alphabet(std::string_view text) {
  static const Bytes bytes = make_bytes();
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (character >= bytes.size() || bytes[character] == 0) return std::nullopt;
    result += static_cast<char>(bytes[character] - 1);
  }
  return result;
}

}  // namespace tessera::text
