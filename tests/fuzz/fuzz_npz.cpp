// Any bytes either are refused with an Error or are arrays that together are no longer than was allowed.
#include <cstdlib>
#include <span>

#include "tessera/base/error.h"
#include "tessera/data/npz.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMost = 1 << 20;
  try {
    uint64_t bytes = 0;
    for (const auto& [name, array] :
         tessera::data::parse_npz(std::as_bytes(std::span(data, size)), "input", kMost)) {
      if (name.empty() || name[0] == '/') std::abort();
      if (array.size() > 0) bytes += array.bytes();
    }
    if (bytes > kMost) std::abort();
  } catch (const tessera::Error& error) {
    if (error.code() != tessera::ErrorCode::invalid_file) std::abort();
  }
  return 0;
}
