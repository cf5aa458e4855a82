// A text of digits, of which each is a token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::testing {

inline std::vector<int32_t> digit_tokens(std::string_view text) {
  std::vector<int32_t> tokens;
  for (const char digit : text) tokens.push_back(digit - '0');
  return tokens;
}

inline std::string digit_text(std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) text += static_cast<char>('0' + token);
  return text;
}

}  // namespace tessera::testing
