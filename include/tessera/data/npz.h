// NumPy's .npz files: a zip archive with a .npy file for each array, as numpy.savez() and
// numpy.savez_compressed() write them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "tessera/compile/feeds.h"
#include "tessera/data/gzip.h"

namespace tessera::data {

// The arrays by their names, as read_npy() has them. Throws Error(io), and Error(invalid_file) as parse_zip()
// and read_npy(), naming the array, when a member is no .npy file, or when all together are longer than
// maximum_bytes.
Feeds read_npz(const std::filesystem::path& path, uint64_t maximum_bytes = kMaximumFileBytes);
// The same of bytes; `name` stands in messages.
Feeds parse_npz(std::span<const std::byte> bytes, const std::string& name,
                uint64_t maximum_bytes = kMaximumFileBytes);

}  // namespace tessera::data
