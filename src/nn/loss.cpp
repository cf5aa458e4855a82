#include "tessera/nn/loss.h"

namespace tessera::nn {

Value* Loss::build(Value* logits, Value* labels) const {
  Value* all = ops::cast(elements(logits, labels), DataType::fp32);
  if (counted == nullptr) return ops::reduce_mean(all);
  Value* count = ops::reduce_sum(ops::cast(counted(labels), DataType::fp32));
  return ops::divide(ops::reduce_sum(all), ops::maximum(count, ops::constant_like(count, 1)));
}

Value* Loss::examples(Value* logits, Value* labels) const {
  Value* all = ops::cast(elements(logits, labels), DataType::fp32);
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < all->type().rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? all : ops::reduce_mean(all, {.axes = axes});
}

Loss cross_entropy(const ops::CrossEntropyOptions& options) {
  return {"cross_entropy",
          [options](Value* logits, Value* labels) { return ops::cross_entropy(logits, labels, options); },
          [ignored = static_cast<double>(options.ignored_label)](Value* labels) {
            return ops::not_equal(labels, ops::constant_like(labels, ignored));
          }};
}

Loss binary_cross_entropy(int64_t classes) {
  return {"binary_cross_entropy", [classes](Value* logits, Value* labels) {
            return ops::binary_cross_entropy(logits, ops::one_hot(labels, classes, logits->data_type()));
          }};
}

Loss mean_squared_error(int64_t classes) {
  return {"mean_squared_error", [classes](Value* logits, Value* labels) {
            Value* targets = ops::one_hot(labels, classes, logits->data_type());
            return ops::square(ops::subtract(logits, targets));
          }};
}

}  // namespace tessera::nn
