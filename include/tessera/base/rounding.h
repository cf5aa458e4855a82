// Whole numbers, none negative, rounded up.
#pragma once

#include <concepts>
#include <type_traits>

namespace tessera {

template <std::integral Integer>
constexpr Integer quotient_rounded_up(Integer value, std::type_identity_t<Integer> divisor) {
  return value / divisor + (value % divisor > 0 ? 1 : 0);  // of every value: nothing overflows
}

// The least multiple that is not below the value.
template <std::integral Integer>
constexpr Integer round_up(Integer value, std::type_identity_t<Integer> multiple) {
  return quotient_rounded_up(value, multiple) * multiple;
}

}  // namespace tessera
