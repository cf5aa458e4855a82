// Numbers and texts in a process's environment.
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>

#include "tessera/base/error.h"

namespace tessera::distribute {

inline std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Throws Error(invalid_argument) with the variable's name.
template <typename Number>
Number number_of(const char* name, const std::string& text) {
  Number value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && rest == text.data() + text.size(), ErrorCode::invalid_argument,
          "the environment's {} is '{}', not a number", name, text);
  return value;
}

}  // namespace tessera::distribute
