// EXPECT_ERROR for statements that a macro's commas would cut.
#pragma once

#include <string>
#include <utility>

#include "support/expect_error.h"

namespace tessera::testing {

template <typename Statement>
void expect_error(ErrorCode code, const std::string& word, Statement&& statement) {
  EXPECT_TRUE(throws_error(std::forward<Statement>(statement), code, {word}));
}

}  // namespace tessera::testing
