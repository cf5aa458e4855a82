// Binary data in the text of a page.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tessera::report {

// RFC 4648, with padding.
std::string encode_base64(std::span<const std::byte> bytes);

}  // namespace tessera::report
