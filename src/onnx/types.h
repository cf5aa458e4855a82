// The format's numbers for element types.
#pragma once

#include <optional>
#include <string>

#include "tessera/base/data_type.h"

namespace tessera::onnx {

inline constexpr int64_t kTextCode = 8;  // TensorProto::STRING

// None for texts and for numbers that the format does not define.
std::optional<DataType> find_data_type(int64_t code);
// Throws Error(invalid_file) naming the number.
DataType data_type_of(int64_t code);
int64_t code_of(DataType type);

}  // namespace tessera::onnx
