#include "ops/contraction/factors.h"

#include <fmt/format.h>

namespace tessera::ops {

DataType type_of_sums(const InferenceCall& call) {
  const DataType first = call.input(0).data_type;
  const DataType second = call.input(1).data_type;
  if (kByteTypes.contains(first) && kByteTypes.contains(second)) return DataType::int32;
  call.require(first == second, fmt::format("input '{}' is {} where the inputs before it are {}",
                                            call.schema.inputs[1].name, to_string(second), to_string(first)));
  return first;
}

}  // namespace tessera::ops
