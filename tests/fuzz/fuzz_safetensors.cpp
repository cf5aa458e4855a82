// Any bytes either are refused with an Error or are a file whose tensors together take all of its data.
#include <cstdlib>
#include <span>

#include "tessera/base/error.h"
#include "tessera/data/safetensors.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto file = tessera::data::SafetensorsFile::parse(bytes, "input");
    size_t taken = 0;
    for (const auto& [name, tensor] : file.read_all()) taken += tensor.bytes();
    if (taken >= size) std::abort();
  } catch (const tessera::Error&) {
  }
  return 0;
}
