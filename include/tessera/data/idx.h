// The IDX format of MNIST and its successors (http://yann.lecun.com/exdb/mnist): two zero bytes, an element
// type, a rank, one big-endian 32-bit extent per axis, then the elements, big-endian and row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/data/gzip.h"

namespace tessera::data {

// The tensor that the bytes hold; gzip is recognised. Element types: 0x08 uint8, 0x09 int8, 0x0B int16,
// 0x0C int32, 0x0D fp32, 0x0E fp64. `name` stands in the messages. Throws Error(invalid_file) that says what
// was expected and what was found.
Tensor parse_idx(std::span<const std::byte> bytes, std::string_view name,
                 uint64_t maximum_bytes = kMaximumFileBytes);

// parse_idx of a file, plain or gzip.
Tensor read_idx(const std::filesystem::path& path, uint64_t maximum_bytes = kMaximumFileBytes);

// The IDX form of a uint8, int8, int32, fp32 or fp64 tensor of rank 1 to 255. Throws Error(invalid_argument)
// for others.
std::vector<std::byte> to_idx(const Tensor& tensor);

}  // namespace tessera::data
