#pragma once

#include <cstdint>

#include "tessera/base/data_type.h"

namespace tessera::cpu {

// Reads indices of either type.
class Indices {
 public:
  Indices(DataType type, const void* memory) : wide_(type == DataType::int64), memory_(memory) {}
  int64_t operator[](int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(memory_)[i] : static_cast<const int32_t*>(memory_)[i];
  }

 private:
  bool wide_;
  const void* memory_;
};

}  // namespace tessera::cpu
