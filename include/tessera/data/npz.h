// NumPy's .npz files: a zip archive with a .npy file for each array, as numpy.savez() and
// numpy.savez_compressed() write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "tessera/compile/feeds.h"
#include "tessera/data/gzip.h"

namespace tessera::data {

// Which arrays are wanted, by their names; is asked for each, in the order of the file. Empty: all.
using WantedArrays = std::function<bool(const std::string& name)>;

// The arrays by their names, as read_npy() has them; the others are not decompressed. Throws Error(io), and
// Error(invalid_file) as parse_zip() and read_npy(), naming the array, when a member is no .npy file, or when
// all together are longer than maximum_bytes.
Feeds read_npz(const std::filesystem::path& path, const WantedArrays& wanted = {},
               uint64_t maximum_bytes = kMaximumFileBytes);
// The same of bytes; `name` stands in messages.
Feeds parse_npz(std::span<const std::byte> bytes, const std::string& name,
                uint64_t maximum_bytes = kMaximumFileBytes, const WantedArrays& wanted = {});

}  // namespace tessera::data
