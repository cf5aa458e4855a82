// What logits say is likeliest.
#pragma once

#include <cstdint>

#include "tessera/base/tensor.h"

namespace tessera::tasks {

struct Likeliest {
  int64_t number = 0;     // of the largest logit, the first of equal ones
  double confidence = 0;  // its softmax
};
// Of one row of logits [..., classes], by its place among all.
Likeliest likeliest_class(const Tensor& logits, int64_t row);

}  // namespace tessera::tasks
