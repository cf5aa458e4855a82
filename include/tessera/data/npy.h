// NumPy's .npy files, versions 1.0 to 3.0 (numpy.lib.format): one array, with a header that names its type,
// order and shape.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "tessera/base/tensor.h"

namespace tessera::data {

// Little-endian or one-byte numbers, booleans and complex numbers, in either order of axes; the result is
// row-major. Throws Error(io), and Error(invalid_file) naming what is wrong.
Tensor read_npy(const std::filesystem::path& path);
// The same of bytes; `name` stands in messages.
Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name);

// Throws Error(unsupported) of types that NumPy does not have: those narrower than a byte, 8-bit floating
// ones and bf16.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace tessera::data
