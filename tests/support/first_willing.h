// Which kernel the CPU takes unmeasured.
#pragma once

#include <string>
#include <vector>

#include "tessera/compile/device.h"

namespace tessera::testing {

// The first candidate that does not refuse; "" where all do.
inline std::string first_willing(const Node& node, const std::vector<bool>& frozen_inputs) {
  for (const KernelCandidate& candidate : Device::cpu()->candidates(node)) {
    if (candidate.refusal({node, frozen_inputs}).empty()) return candidate.name;
  }
  return "";
}

}  // namespace tessera::testing
