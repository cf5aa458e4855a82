// Any text either is refused with an Error or holds results that are written back as equal ones.
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"

#include "compile/tuning_file.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tessera::TuningResultsOfDevices results;
  try {
    results = tessera::parse_tuning_results({reinterpret_cast<const char*>(data), size});
  } catch (const tessera::Error&) {
    return 0;
  }
  if (tessera::parse_tuning_results(tessera::format_tuning_results(results)) != results) std::abort();
  return 0;
}
