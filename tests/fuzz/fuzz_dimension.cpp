// Any text either is refused with an Error or is an extent whose printed form reads back as itself. What
// follows a semicolon is a second one, and the two are computed with.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/graph/dimension.h"

#include "fuzz.h"

namespace {

using namespace tessera;

void check(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

void check_reads_back(const Dimension& value) {
  const std::string text = value.to_string();
  check(parse_dimension(text) == value, text + " reads back as " + parse_dimension(text).to_string());
}

// Extents beyond what the normal form holds are refused.
void try_one(const std::function<Dimension()>& compute) {
  try {
    check_reads_back(compute());
  } catch (const Error& error) {
    check(error.code() == ErrorCode::invalid_graph, error.what());
  }
}

SymbolBindings bindings_of(const Dimension& value) {
  std::set<std::string> symbols;
  value.collect_symbols(symbols);
  SymbolBindings bindings;
  for (const std::string& symbol : symbols) bindings[symbol] = static_cast<int64_t>(3 * bindings.size() + 1);
  return bindings;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find(';');
  Dimension a;
  Dimension b(3);
  try {
    a = parse_dimension(text.substr(0, end));
    if (end != std::string_view::npos) b = parse_dimension(text.substr(end + 1));
  } catch (const Error&) {
    return 0;
  }
  check_reads_back(a);
  check_reads_back(b);
  try_one([&] { return a + b; });
  try_one([&] { return a - b; });
  try_one([&] { return a * b; });
  try_one([&] { return a.floor_divide(7); });
  try_one([&] { return element_count(SymbolicShape{a, b, a}); });
  try_one([&] { return a.substitute(bindings_of(a)); });
  try_one([&] { return (a + b).substitute(bindings_of(b)); });
  try_one([&] {
    const auto quotient = (a * b).divide_exactly(b);
    return quotient.value_or(a);
  });
  return 0;
}
