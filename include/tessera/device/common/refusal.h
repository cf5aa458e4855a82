// How a candidate says that it does not run a node.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "tessera/base/error.h"

namespace tessera::backend {

// Thrown from wherever a candidate's plan finds that out; checked_candidate() makes a Refusal of it. No other
// Error(unsupported), as of a library that is missing, is taken for one.
class Refused : public Error {
 public:
  explicit Refused(const std::string& reason) : Error(ErrorCode::unsupported, reason) {}
};

// The candidate is refused with this reason.
template <typename... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw Refused(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// refuse() unless the condition holds.
template <typename... Arguments>
void refuse_unless(bool condition, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (!condition) refuse(format, std::forward<Arguments>(arguments)...);
}

// What `make` returns; nothing where it refuses.
template <typename Make>
auto unless_refused(const Make& make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const Refused&) {
    return std::nullopt;
  }
}

}  // namespace tessera::backend
