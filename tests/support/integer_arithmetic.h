// All that is done with two integers, of any size, in one graph, for every device.
#pragma once

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "support/device_case.h"

namespace tessera::testing {

// Those of uint64 neither int64 nor double holds: no operator computes with them.
inline constexpr DataType kIntegersOfAllSizes[] = {DataType::int8,   DataType::uint8, DataType::int16,
                                                   DataType::uint16, DataType::int32, DataType::uint32,
                                                   DataType::int64};

// Over all numbers of the type up to 32 bits, so that most results wrap, and within the graph, too.
inline Case integer_arithmetic(DataType type) {
  Case result = text_case(fmt::format(
      R"(graph arithmetic(input %a: {0}[1037], input %b: {0}[1037]) {{
  %sum = add(%a, %b)
  %product = multiply(%sum, %a)
  %difference = subtract(%b, %product)
  %quotient = divide(%difference, %b)
  %by_all = divide(%product, %sum)
  %larger = maximum(%quotient, %difference)
  %smaller = minimum(%product, %sum)
  %less = less(%sum, %product)
  %greater_equal = greater_equal(%difference, %quotient)
  %same = equal(%sum, %b)
  %other = not_equal(%quotient, %by_all)
  output sum = %sum
  output product = %product
  output difference = %difference
  output quotient = %quotient
  output by_all = %by_all
  output larger = %larger
  output smaller = %smaller
  output less = %less
  output greater_equal = %greater_equal
  output same = %same
  output other = %other
}})",
      to_string(type)));
  const TypeTraits& traits = traits_of(type);
  constexpr double kMost = 4294967295.0;
  uint64_t seed = 1;
  for (Tensor& input : result.inputs)
    input = random_tensor(type, input.shape(), std::max(traits.lowest, -kMost),
                          std::min(traits.highest, kMost), ++seed);
  for (int64_t i = 2; i < 100; ++i) result.inputs[0].set(i, 0);  // where a sum is its other operand
  // Where a division is not what the instruction makes of it.
  result.inputs[1].set(0, 0);
  result.inputs[0].set(1, std::max(traits.lowest, -kMost));
  result.inputs[1].set(1, traits.lowest < 0 ? -1 : 1);
  return result;
}

}  // namespace tessera::testing
