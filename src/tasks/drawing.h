// Pictures for terminals.
#pragma once

#include <string>

#include "tessera/report/pictures.h"

namespace tessera::tasks {

// Indented lines of characters: two pixels, one above the other, become one, the brighter the denser.
std::string draw(const report::Picture& picture);

}  // namespace tessera::tasks
