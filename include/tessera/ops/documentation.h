// The documentation of the operators, from their schemas.
#pragma once

#include <string>

namespace tessera::ops {

// docs/operators.md: one table for each class of operators, with inputs, attributes, outputs and meaning.
std::string operators_markdown();

}  // namespace tessera::ops
