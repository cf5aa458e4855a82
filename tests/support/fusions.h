// What devices bring to the passes, for tests.
#pragma once

#include <utility>
#include <vector>

#include "tessera/device/common/batch_norm_patterns.h"
#include "tessera/device/common/contraction_pattern.h"
#include "tessera/passes/pass.h"

namespace tessera::testing {

// Of a device that brings these patterns and nothing else.
inline PassContext brings(std::vector<FusionPattern> patterns) {
  PassContext context;
  context.target.patterns = std::move(patterns);
  return context;
}

inline std::vector<FusionPattern> batch_norm_patterns() {
  return {backend::batch_norm_gradient_pattern(), backend::recomputed_batch_norm_pattern(),
          backend::batch_norm_pattern()};
}

inline FusionPattern alternative(FusionPattern pattern) {
  pattern.alternative = true;
  return pattern;
}

}  // namespace tessera::testing
