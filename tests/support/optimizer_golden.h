// The parameters of the optimizers' golden values, and their contents by formula.
#pragma once

#include <map>
#include <string>

#include "tessera/base/tensor.h"
#include "tessera/models/formula.h"

namespace tessera::testing {

inline constexpr int64_t kSteps = 10;
inline const std::map<std::string, Shape> kShapes{
    {"first.weight", {4, 3}}, {"second.weight", {3, 5}}, {"second.bias", {5}}};

inline Tensor formula_tensor(const std::string& name, const Shape& shape) {
  Tensor result(DataType::fp32, shape);
  auto values = result.data<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = models::formula::uniform(name, i);
  return result;
}

}  // namespace tessera::testing
