// What random_uniform and random_normal share.
#pragma once

#include <functional>

#include "tessera/base/random.h"
#include "tessera/graph/operator.h"

namespace tessera::ops {

struct RandomOperator {
  std::string name;
  std::string documentation;
  std::function<double(const Random& random, uint64_t index, DataType type)> number;
  bool joins_clusters = false;
};
OperatorSchema random_operator(const RandomOperator& description);

}  // namespace tessera::ops
