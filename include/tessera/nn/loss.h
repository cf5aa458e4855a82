// Losses as the trainer takes them: from logits and labels to one scalar.
#pragma once

#include <functional>
#include <string>

#include "tessera/ops/functions.h"

namespace tessera::nn {

struct Loss {
  std::string name;
  // [batch], or [batch, ...] whose mean over the further axes is the loss of an example.
  std::function<Value*(Value* logits, Value* labels)> elements;

  Value* build(Value* logits, Value* labels) const;     // the mean over the batch, fp32 []
  Value* examples(Value* logits, Value* labels) const;  // of each example, fp32 [batch]
};

// Mean over all rows; ignored labels contribute zero.
Loss cross_entropy(const ops::CrossEntropyOptions& options = {});
// Against one-hot targets, mean over rows and classes.
Loss binary_cross_entropy(int64_t classes);
// Mean squared error against one-hot targets.
Loss mean_squared_error(int64_t classes);

}  // namespace tessera::nn
