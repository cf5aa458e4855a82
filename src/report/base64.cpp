#include "tessera/report/base64.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tessera::report {

std::string encode_base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j)
      word = word << 8 | (j < count ? std::to_integer<uint32_t>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) result += j <= count ? kDigits[word >> (18 - 6 * j) & 63] : '=';
  }
  return result;
}

}  // namespace tessera::report
