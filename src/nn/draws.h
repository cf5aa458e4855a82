// Random numbers of the images of a batch.
#pragma once

#include "tessera/base/error.h"
#include "tessera/nn/context.h"
#include "tessera/ops/functions.h"

namespace tessera::nn {

// Up to so many numbers for each row, drawn for those of all ranks, from a stream of its own.
class Draws {
 public:
  Draws(Context& context, Dimension batch, int64_t numbers) : numbers_(numbers) {
    const auto scope = context.scope("augmentation");
    drawn_ = context.own_rows(ops::random_uniform(context.random_counter(),
                                                  context.whole_batch({batch, Dimension(numbers)}),
                                                  context.next_random_stream()));
  }

  // fp32 [batch], in [0, 1).
  Value* uniform() {
    require(next_ < numbers_, ErrorCode::internal, "more than {} numbers are drawn for an image", numbers_);
    Value* column = ops::slice(drawn_, {0, next_}, {ops::kWholeAxis, next_ + 1});
    ++next_;
    return ops::reshape(column, {drawn_->shape()[0]});
  }
  Value* between(double low, double high) { return ops::add(ops::multiply(uniform(), high - low), low); }
  // boolean [batch]; certain where the probability is 1.
  Value* happens(double probability) {
    Value* number = uniform();
    return ops::less(number, ops::constant_like(number, probability));
  }

 private:
  int64_t numbers_;
  int64_t next_ = 0;
  Value* drawn_ = nullptr;
};

}  // namespace tessera::nn
