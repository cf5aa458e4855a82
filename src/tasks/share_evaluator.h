// An evaluator of sums by row, divided by other sums or by the number of rows.
#pragma once

#include <string>
#include <vector>

#include "tessera/train/evaluator.h"

namespace tessera::tasks {

struct Share {
  std::string name;    // of the result
  std::string sum;     // an output of evaluation, [batch]
  std::string weight;  // another one; empty: each row counts 1
};

// 0 where nothing was counted. Merges with others of the same shares.
train::EvaluatorMaker share_evaluator(std::vector<Share> shares);

}  // namespace tessera::tasks
