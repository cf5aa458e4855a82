#include "tessera/base/data_type.h"

#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::fp32:
      return "fp32";
    case DataType::fp64:
      return "fp64";
    case DataType::fp16:
      return "fp16";
    case DataType::bf16:
      return "bf16";
    case DataType::int8:
      return "int8";
    case DataType::uint8:
      return "uint8";
    case DataType::int32:
      return "int32";
    case DataType::int64:
      return "int64";
    case DataType::boolean:
      return "bool";
  }
  return "?";
}

DataType parse_data_type(std::string_view text) {
  std::vector<std::string> names;
  for (DataType type : kAllDataTypes) {
    if (to_string(type) == text) return type;
    names.emplace_back(to_string(type));
  }
  fail(ErrorCode::invalid_argument, "'{}' is not a data type{} (the types are {})", text,
       did_you_mean(text, names), fmt::join(names, ", "));
}

size_t size_of(DataType type) {
  return dispatch(type, []<typename T>() { return sizeof(T); });
}

bool is_floating(DataType type) {
  return type == DataType::fp32 || type == DataType::fp64 || type == DataType::fp16 || type == DataType::bf16;
}

bool is_integer(DataType type) {
  return !is_floating(type) && type != DataType::boolean;
}

}  // namespace tessera
