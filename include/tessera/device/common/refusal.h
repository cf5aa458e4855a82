// How a candidate says that it cannot run a node.
#pragma once

#include <utility>

#include "tessera/base/error.h"

namespace tessera::backend {

// Throws Error(unsupported) unless the condition holds: the candidate is refused with this reason.
template <typename... Arguments>
void refuse_unless(bool condition, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  require(condition, ErrorCode::unsupported, format, std::forward<Arguments>(arguments)...);
}

}  // namespace tessera::backend
