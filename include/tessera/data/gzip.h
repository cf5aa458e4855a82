// Gzip (RFC 1952) and what it is made of, deflated bytes (RFC 1951), in memory, by zlib. Faults throw
// Error(invalid_file) that names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::data {

inline constexpr uint64_t kMaximumFileBytes = uint64_t{16} << 30;

// Whether the bytes begin with gzip's magic number.
bool is_gzip(std::span<const std::byte> bytes);

// The decompressed contents of one or more gzip members. `name` stands in the messages. Throws when the data
// are truncated, corrupt or longer than maximum_bytes once decompressed; memory grows with what was really
// decoded, so that a forged length costs nothing.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes, std::string_view name,
                              uint64_t maximum_bytes);

// At most the first `count` decompressed bytes; what follows them is not looked at.
std::vector<std::byte> gunzip_prefix(std::span<const std::byte> bytes, std::string_view name, uint64_t count);

// What deflated bytes without any header become, which is to be exactly so long. Throws when it is not, or
// when they are truncated or corrupt or something follows them.
std::vector<std::byte> inflate_raw(std::span<const std::byte> bytes, std::string_view name, uint64_t count);

std::vector<std::byte> gzip(std::span<const std::byte> bytes);

// A file that may be plain or gzip, told by its magic number and not by its name.
std::vector<std::byte> read_plain_or_gzip(const std::filesystem::path& path,
                                          uint64_t maximum_bytes = kMaximumFileBytes);

}  // namespace tessera::data
