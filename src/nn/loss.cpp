#include "tessera/nn/loss.h"

namespace tessera::nn {
namespace {

Value* mean_in_fp32(Value* x) {
  return ops::reduce_mean(ops::cast(x, DataType::fp32));
}

}  // namespace

Loss cross_entropy(const ops::CrossEntropyOptions& options) {
  return {"cross_entropy", [options](Value* logits, Value* labels) {
            return mean_in_fp32(ops::cross_entropy(logits, labels, options));
          }};
}

Loss binary_cross_entropy(int64_t classes) {
  return {"binary_cross_entropy", [classes](Value* logits, Value* labels) {
            return mean_in_fp32(
                ops::binary_cross_entropy(logits, ops::one_hot(labels, classes, logits->data_type())));
          }};
}

Loss mean_squared_error(int64_t classes) {
  return {"mean_squared_error", [classes](Value* logits, Value* labels) {
            Value* targets = ops::one_hot(labels, classes, logits->data_type());
            return mean_in_fp32(ops::square(ops::subtract(logits, targets)));
          }};
}

}  // namespace tessera::nn
