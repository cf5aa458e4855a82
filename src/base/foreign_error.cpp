#include "tessera/base/foreign_error.h"

#include <new>
#include <system_error>

namespace tessera {

Error as_error(const std::exception& exception) {
  if (const auto* own = dynamic_cast<const Error*>(&exception)) return *own;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr)
    return {ErrorCode::out_of_memory, "out of memory"};
  // Of printing, of the file system, or of starting a thread.
  if (const auto* refused = dynamic_cast<const std::system_error*>(&exception)) {
    const bool scarce = refused->code() == std::errc::resource_unavailable_try_again ||
                        refused->code() == std::errc::not_enough_memory;
    return {scarce ? ErrorCode::out_of_memory : ErrorCode::io, refused->what()};
  }
  return {ErrorCode::internal, fmt::format("internal fault: {}", exception.what())};
}

}  // namespace tessera
