// Letters of texts.
#pragma once

#include <string>

namespace tessera::onnx {

// Letters in the other case, each for itself, as the Unicode tables of the C library have them; what is no
// valid UTF-8 stays.
std::string to_upper(const std::string& text);
std::string to_lower(const std::string& text);

}  // namespace tessera::onnx
