// Text as numbers: its bytes.
#pragma once

#include <filesystem>

#include "tessera/base/tensor.h"

namespace tessera::data {

// Bytes of a file, or of the text files of a folder in the order of their names, cut into pieces: int32
// [pieces, length]. What is left at the end is left out. A folder's text files are those that are no links
// and hold no zero byte. Throws Error(io) when there is nothing to read, Error(invalid_file) when it does not
// fill one piece.
Tensor read_byte_windows(const std::filesystem::path& path, int64_t length);

}  // namespace tessera::data
