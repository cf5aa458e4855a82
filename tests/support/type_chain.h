// A graph that brings numbers to an element type and back, moves them on the way, and computes before and
// after.
#pragma once

#include <fmt/format.h>

#include "support/device_case.h"

namespace tessera::testing {

inline Case type_chain(DataType type) {
  return text_case(
      fmt::format("graph chain(input %x: fp32[6, 10]) {{ %m = multiply(%x, %x) %a = cast(%m) {{type = {0}}} "
                  "%t = transpose(%a) "
                  "{{permutation = [1, 0]}} %s = slice(%t) {{starts = [1, 0], limits = [10, 6], strides = "
                  "[2, 1]}} %f = cast(%s) "
                  "{{type = fp32, saturate = false}} %y = add(%f, %f) output stored = %a output y = %y }}",
                  to_string(type)));
}

}  // namespace tessera::testing
