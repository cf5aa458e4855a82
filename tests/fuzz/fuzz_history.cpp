// Any text either is refused with an Error or is a training history that is written back as an equal one.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/train/history.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tessera::train::RunHistory history;
  try {
    history = tessera::train::history_from_json({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const tessera::Error&) {
    return 0;
  }
  const std::string written = to_json(history);
  const std::string again = to_json(tessera::train::history_from_json(written, "written"));
  if (again != written) {
    std::fprintf(stderr, "written:\n%s\nread back and written:\n%s\n", written.c_str(), again.c_str());
    std::abort();
  }
  return 0;
}
