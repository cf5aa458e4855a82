// GPT-2's alphabet: a visible character for each byte, so that tokens of any bytes are text.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::text {

// The character of each byte: itself where it is visible in Latin 1, the others from U+0100 on in their
// order.
const std::array<char32_t, 256>& byte_alphabet();
std::string in_alphabet(std::string_view bytes);
// Nothing where a character is none of the alphabet.
std::optional<std::string> from_alphabet(std::string_view text);

}  // namespace tessera::text
