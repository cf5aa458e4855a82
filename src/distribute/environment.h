// Numbers and texts in a process's environment.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera::distribute {

inline std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// By one of the parsers in base/text.h. Throws Error(invalid_argument) with the variable's name.
template <typename Number>
Number number_of(const char* name, const std::string& text, std::optional<Number> parse(std::string_view)) {
  const std::optional<Number> value = parse(text);
  require(value.has_value(), ErrorCode::invalid_argument, "the environment's {} is '{}', not a number", name,
          text);
  return *value;
}

}  // namespace tessera::distribute
