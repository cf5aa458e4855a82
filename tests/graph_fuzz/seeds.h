// Which seeds a test tries, and what it says of those that fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tessera::testing {

// Reads "FIRST-LAST" or "SEED", of --seeds. Returns false where it is neither.
bool ask_for_seeds(const std::string& text);

// Calls `check` for one seed after another, which returns what is wrong with it: those that were asked for,
// by
// --seeds, TESSERA_GRAPH_SEEDS or TESSERA_GRAPH_SEED, or else from 1 on as many as fit into the time. A seed
// that fails fails the test and does not end it, unless `broken` says that the device is of no use any more.
// `test` is this test's full name, of the command that repeats it.
void try_seeds(const std::string& test, double seconds, const std::function<std::string(uint64_t)>& check,
               const std::function<bool()>& broken = {});

}  // namespace tessera::testing
