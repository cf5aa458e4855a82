#include "infer/kept_type.h"

namespace tessera::infer {

TensorType kept_type(const TensorType& type) {
  const bool is_packed = bits_of(type.data_type) < 8;
  if (!is_packed && type.data_type != DataType::complex128) return type;
  return {DataType::uint8, {type.bytes()}};
}

}  // namespace tessera::infer
