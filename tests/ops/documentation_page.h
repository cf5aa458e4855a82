#pragma once

namespace tessera::testing {

// Writes docs/operators.md from the schemas.
void write_documentation_page();

}  // namespace tessera::testing
