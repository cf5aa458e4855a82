// Which program this process is.
#pragma once

#include <string>

namespace tessera::distribute {

// Equal for processes of one build: a line for the program and each of tessera's libraries that are loaded,
// with the identifier that the linker gave it.
std::string program_identity();

}  // namespace tessera::distribute
