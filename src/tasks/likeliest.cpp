#include "tasks/likeliest.h"

#include <cmath>

namespace tessera::tasks {

Likeliest likeliest_class(const Tensor& logits, int64_t row) {
  const int64_t classes = logits.shape().back();
  const auto at = [&](int64_t i) { return logits.at(row * classes + i); };
  int64_t best = 0;
  for (int64_t i = 1; i < classes; ++i) {
    if (at(i) > at(best)) best = i;
  }
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) sum += std::exp(at(i) - at(best));
  return {.number = best, .confidence = 1 / sum};
}

}  // namespace tessera::tasks
