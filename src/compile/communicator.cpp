#include "tessera/compile/communicator.h"

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera {
namespace {

constexpr std::string_view kNames[] = {"sum", "mean", "maximum", "minimum"};

}  // namespace

std::string_view to_string(Reduction reduction) {
  return kNames[static_cast<size_t>(reduction)];
}

Reduction parse_reduction(std::string_view text) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == text) return static_cast<Reduction>(i);
  }
  fail(ErrorCode::invalid_argument, "there is no reduction '{}' (there are: sum, mean, maximum, minimum)",
       text);
}

bool reduces(DataType type, Reduction reduction) {
  return (reduction == Reduction::mean ? kFloatingTypes : kNumericTypes).contains(type);
}

}  // namespace tessera
