#include "onnx/types.h"

#include <array>

#include "tessera/base/error.h"

namespace tessera::onnx {
namespace {

struct Code {
  int64_t code;
  DataType type;
};

// onnx.proto, TensorProto.DataType.
constexpr std::array kCodes{
    Code{1, DataType::fp32},          Code{2, DataType::uint8},         Code{3, DataType::int8},
    Code{4, DataType::uint16},        Code{5, DataType::int16},         Code{6, DataType::int32},
    Code{7, DataType::int64},         Code{9, DataType::boolean},       Code{10, DataType::fp16},
    Code{11, DataType::fp64},         Code{12, DataType::uint32},       Code{13, DataType::uint64},
    Code{14, DataType::complex64},    Code{15, DataType::complex128},   Code{16, DataType::bf16},
    Code{17, DataType::fp8_e4m3fn},   Code{18, DataType::fp8_e4m3fnuz}, Code{19, DataType::fp8_e5m2},
    Code{20, DataType::fp8_e5m2fnuz}, Code{21, DataType::uint4},        Code{22, DataType::int4},
    Code{23, DataType::fp4_e2m1},     Code{24, DataType::fp8_e8m0},     Code{25, DataType::uint2},
    Code{26, DataType::int2}};

}  // namespace

std::optional<DataType> find_data_type(int64_t code) {
  for (const Code& entry : kCodes) {
    if (entry.code == code) return entry.type;
  }
  return std::nullopt;
}

DataType data_type_of(int64_t code) {
  const std::optional<DataType> type = find_data_type(code);
  require(type.has_value(), ErrorCode::invalid_file, "{} is no number of an element type of the ONNX format",
          code);
  return *type;
}

int64_t code_of(DataType type) {
  for (const Code& entry : kCodes) {
    if (entry.type == type) return entry.code;
  }
  fail(ErrorCode::internal, "{} has no number in the ONNX format", to_string(type));
}

}  // namespace tessera::onnx
