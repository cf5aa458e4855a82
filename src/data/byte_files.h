// The bytes of text files.
#pragma once

#include <filesystem>
#include <string>

namespace tessera::data {

// Of a file, or of the text files of a folder in the order of their names; read_byte_windows() says which and
// what it throws.
std::string read_bytes(const std::filesystem::path& path);

}  // namespace tessera::data
