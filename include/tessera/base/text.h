// Small text helpers shared by the parsers and the error messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// ASCII whatever the process's locale: what a file means must not depend on where it is read.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// The number that the whole text writes in decimal digits, after a '-' at most. Nothing where it is none or
// beyond int64.
std::optional<int64_t> parse_integer(std::string_view text);

// The number that the whole text writes, with a point in every locale; "inf" and "nan" too. Nothing where it
// is no number or beyond the range of double.
std::optional<double> parse_real(std::string_view text);

// The candidate with the smallest edit distance to `name`, or "" when there is none within half its length.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// ", did you mean 'x'?" or "". For fail(), not for require(), which would compare all candidates where
// nothing is wrong.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// "1.5 GiB", "312 KiB", "17 B".
std::string format_bytes(double bytes);

}  // namespace tessera
