// Any text either is refused with an Error or is a graph whose printed form reads back as itself, and whose
// symbols take numbers.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/graph/graph.h"

#include "fuzz.h"

namespace {

using namespace tessera;

// An invariant of ours that text can break is a fault like any crash.
void check_is_refusal(const Error& error) {
  if (error.code() != ErrorCode::internal) return;
  std::fprintf(stderr, "internal error: %s\n", error.what());
  std::abort();
}

void check_reads_back(const Graph& graph) {
  const std::string printed = print(graph);
  const std::string again = print(*parse_graph(printed));
  if (again == printed) return;
  std::fprintf(stderr, "printed:\n%s\nread back and printed:\n%s\n", printed.c_str(), again.c_str());
  std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::unique_ptr<Graph> graph;
  try {
    graph = parse_graph({reinterpret_cast<const char*>(data), size});
  } catch (const Error& error) {
    check_is_refusal(error);
    return 0;
  }
  check_reads_back(*graph);
  SymbolBindings bindings;
  for (const std::string& symbol : free_symbols(*graph))
    bindings[symbol] = static_cast<int64_t>(2 + bindings.size());
  if (bindings.empty()) return 0;
  std::unique_ptr<Graph> specialized;
  try {
    specialized = specialize(*graph, bindings);
  } catch (const Error& error) {
    check_is_refusal(error);
    return 0;
  }
  verify(*specialized);
  check_reads_back(*specialized);
  return 0;
}
