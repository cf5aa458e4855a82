// Any text either is refused with an Error or is a graph whose printed form reads back as itself.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/graph/graph.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string printed;
  try {
    printed = tessera::print(*tessera::parse_graph({reinterpret_cast<const char*>(data), size}));
  } catch (const tessera::Error&) {
    return 0;
  }
  const std::string again = tessera::print(*tessera::parse_graph(printed));
  if (again != printed) {
    std::fprintf(stderr, "printed:\n%s\nread back and printed:\n%s\n", printed.c_str(), again.c_str());
    std::abort();
  }
  return 0;
}
