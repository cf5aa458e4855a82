// How a candidate says that it cannot run a node.
#pragma once

#include <optional>
#include <utility>

#include "tessera/base/error.h"

namespace tessera::backend {

// Throws Error(unsupported) unless the condition holds: the candidate is refused with this reason.
template <typename... Arguments>
void refuse_unless(bool condition, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  require(condition, ErrorCode::unsupported, format, std::forward<Arguments>(arguments)...);
}

// What `make` returns; nothing where it refuses.
template <typename Make>
auto unless_refused(const Make& make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const Error& refusal) {
    if (refusal.code() != ErrorCode::unsupported) throw;
    return std::nullopt;
  }
}

}  // namespace tessera::backend
