// The one exception type of the library, and the helper that composes its messages.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace tessera {

// What kind of fault it was; the command line maps it to an exit code (docs/command_line.md).
enum class ErrorCode {
  invalid_argument,  // the caller asked for something that cannot be
  invalid_graph,     // a graph that breaks a rule of the verifier
  invalid_file,      // a foreign file that is truncated, corrupt or of another kind
  io,                // the operating system refused: missing, unwritable, disk full
  out_of_memory,
  unsupported,   // legal, but no device or kernel can do it
  device_fault,  // a device failed while it was used: a lost context, an illegal address, faulty memory
  not_finite,    // a training step made NaN or infinity
  rank_failure,  // another process of those that compute together died, hangs, or has stopped all
  internal,      // a broken invariant of ours
};

// Whether it says nothing of what was tried: elsewhere, or another time, the same may work. Whoever tries
// several ways, or remembers what failed, passes such errors on.
inline bool is_of_the_machine(ErrorCode code) {
  return code == ErrorCode::out_of_memory || code == ErrorCode::device_fault;
}

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// Throws Error with a formatted message: fail(ErrorCode::io, "{}: cannot open", path).
template <typename... Arguments>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw Error(code, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// fail() unless the condition holds.
template <typename... Arguments>
void require(bool condition, ErrorCode code, fmt::format_string<Arguments...> format,
             Arguments&&... arguments) {
  if (!condition) fail(code, format, std::forward<Arguments>(arguments)...);
}

}  // namespace tessera
