// Any bytes either are refused with an Error or decompress to at most what was allowed, which compresses
// back.
#include <cstdlib>
#include <span>

#include "tessera/base/error.h"
#include "tessera/data/gzip.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMaximumBytes = 1 << 20;
  const auto input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> plain;
  try {
    plain = tessera::data::gunzip(input, "input", kMaximumBytes);
  } catch (const tessera::Error&) {
    return 0;
  }
  if (plain.size() > kMaximumBytes) std::abort();
  if (tessera::data::gunzip_prefix(input, "input", plain.size() / 2).size() != plain.size() / 2) std::abort();
  if (tessera::data::gunzip(tessera::data::gzip(plain), "written", plain.size()) != plain) std::abort();
  return 0;
}
