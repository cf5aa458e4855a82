#include "tasks/masking.h"

#include "tessera/ops/functions.h"

namespace tessera::tasks {

MaskingDraws::MaskingDraws(nn::Context& context)
    : context_(context),
      counter_(context.training() ? context.random_counter()
                                  : ops::constant(context.graph(), Tensor::from<int64_t>({2}, {0, 0}))) {}

Value* MaskingDraws::uniform(const SymbolicShape& shape) const {
  const SymbolicShape whole = context_.whole_batch(shape);
  return context_.own_rows(ops::random_uniform(counter_, whole, context_.next_random_stream()));
}

Value* happens(Value* draw, double probability) {
  return ops::less(draw, ops::constant_like(draw, probability));
}

Value* is_none_of(Value* tokens, const std::vector<int64_t>& kept) {
  Value* result = ops::constant(tokens->graph(), Tensor::scalar(DataType::boolean, 1));
  for (const int64_t token : kept)
    result = ops::logical_and(result,
                              ops::not_equal(tokens, ops::constant_like(tokens, static_cast<double>(token))));
  return ops::broadcast_to(result, tokens->shape());
}

Value* gaps_for(const MaskingDraws& draws, Value* labels, int64_t mask, int64_t vocabulary) {
  const SymbolicShape& shape = labels->shape();
  const auto count = static_cast<double>(vocabulary);
  Value* kind = draws.uniform(shape);
  Value* any = ops::cast(ops::floor(ops::multiply(draws.uniform(shape), count)), labels->data_type());
  any = ops::minimum(any, ops::constant_like(any, count - 1));  // a draw may round up to 1
  Value* hidden = ops::broadcast_to(ops::constant_like(labels, static_cast<double>(mask)), shape);
  return ops::select(happens(kind, 0.8), hidden, ops::select(happens(kind, 0.9), any, labels));
}

}  // namespace tessera::tasks
