// Any bytes either are refused with an Error or are a tensor that takes the file's bytes after its header.
#include <cstdlib>
#include <span>

#include "tessera/base/error.h"
#include "tessera/data/npy.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const tessera::Tensor tensor = tessera::data::parse_npy(std::as_bytes(std::span(data, size)), "input");
    if (tensor.bytes() >= size) std::abort();
  } catch (const tessera::Error&) {
  }
  return 0;
}
