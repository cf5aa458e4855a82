// Operators that only tests have, for what the registry's own do not use yet.
#pragma once

namespace tessera::testing {

// Registers, once in a process:
// - "sample_lists"(x) {reals factors = [], texts labels = []}: x.
void register_sample_operators();

}  // namespace tessera::testing
