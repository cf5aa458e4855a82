// Labels of which some count nothing.
#pragma once

#include "tessera/graph/graph.h"

namespace tessera::tasks {

struct CountedLabels {
  Value* labels;  // without those below 0, of which no loss could be computed
  Value* counts;  // fp32: 1 where there is a label, 0 where it is below 0
};
CountedLabels counted_labels(Value* labels);

// fp32: 1 where the largest logit of a row is that of its label.
Value* hits_of(Value* logits, Value* labels);

}  // namespace tessera::tasks
