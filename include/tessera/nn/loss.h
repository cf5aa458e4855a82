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
  // Which labels count, as booleans like the elements; null: all.
  std::function<Value*(Value* labels)> counted = nullptr;

  // The mean over what counts of the batch, fp32 []; 0 where nothing does.
  Value* build(Value* logits, Value* labels) const;
  Value* examples(Value* logits, Value* labels) const;  // of each example, fp32 [batch]
};

// Mean over the rows whose label is not the ignored one.
Loss cross_entropy(const ops::CrossEntropyOptions& options = {});
// Against one-hot targets, mean over rows and classes.
Loss binary_cross_entropy(int64_t classes);
// Mean squared error against one-hot targets.
Loss mean_squared_error(int64_t classes);

}  // namespace tessera::nn
