// Any bytes either are refused with an Error or hold a tensor that is written back as an equal one.
#include <cstdlib>
#include <span>

#include "tessera/base/error.h"
#include "tessera/data/idx.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMaximumBytes = 1 << 20;
  tessera::Tensor tensor;
  try {
    tensor = tessera::data::parse_idx(std::as_bytes(std::span(data, size)), "input", kMaximumBytes);
  } catch (const tessera::Error&) {
    return 0;
  }
  if (tensor.bytes() > 2 * kMaximumBytes) std::abort();  // 16-bit integers become 32-bit
  const auto bytes = tessera::data::to_idx(tensor);
  if (!tessera::data::parse_idx(bytes, "written").identical(tensor)) std::abort();
  return 0;
}
