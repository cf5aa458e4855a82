#include "tasks/counted_labels.h"

#include "tessera/ops/functions.h"

namespace tessera::tasks {

CountedLabels counted_labels(Value* labels) {
  Value* classes = ops::maximum(labels, ops::constant_like(labels, 0));
  return {.labels = classes, .counts = ops::cast(ops::equal(labels, classes), DataType::fp32)};
}

Value* hits_of(Value* logits, Value* labels) {
  return ops::cast(ops::equal(ops::argmax(logits), labels), DataType::fp32);
}

}  // namespace tessera::tasks
