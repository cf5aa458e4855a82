// What others throw (the standard library, libraries below ours), as the one exception type of the library.
#pragma once

#include <exception>

#include "tessera/base/error.h"

namespace tessera {

// An Error as it is. Lack of memory or of threads is out_of_memory, what else the operating system refused
// io, and all other exceptions a fault of ours.
Error as_error(const std::exception& exception);

}  // namespace tessera
