// Which types contractions multiply, and what the sums of the products are.
#pragma once

#include "tessera/graph/operator.h"

namespace tessera::ops {

inline constexpr TypeSet kByteTypes{DataType::int8, DataType::uint8};
inline constexpr TypeSet kFactorTypes = kFloatingTypes | kByteTypes;

// Of the first two inputs: bytes of either sign give sums in int32, floating operands agree.
DataType type_of_sums(const InferenceCall& call);

}  // namespace tessera::ops
