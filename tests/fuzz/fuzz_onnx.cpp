// Any bytes either are refused with an Error or are a module whose operators can be told.
#include <span>

#include "tessera/base/error.h"
#include "tessera/onnx/onnx.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto module = tessera::onnx::parse(std::as_bytes(std::span(data, size)), "input");
    tessera::program::unsupported_operators(*module);
  } catch (const tessera::Error&) {
  }
  return 0;
}
