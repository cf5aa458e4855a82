#include <utility>

#include "tessera/ops/functions.h"
#include "tessera/optim/optimizer.h"

namespace tessera::optim {

UpdateContext::UpdateContext(nn::Context& context, const nn::Variable& variable, Value* parameter,
                             Value* gradient, Value* learning_rate, Value* step, Value* rows)
    : context_(context),
      variable_(variable),
      parameter_(parameter),
      gradient_(gradient),
      learning_rate_(learning_rate),
      step_(step),
      rows_(rows),
      readable_rows_(rows == nullptr ? nullptr : ops::maximum(rows, ops::constant_like(rows, 0))) {}

Value* UpdateContext::rows_of(Value* table) const {
  return ops::cast(rows_ == nullptr ? table : ops::gather(table, readable_rows_), DataType::fp32);
}

Value* UpdateContext::with_rows(Value* table, Value* next) const {
  next = ops::cast(next, table->data_type());
  return rows_ == nullptr ? next : ops::set_rows(table, rows_, next);
}

Value* UpdateContext::state(const std::string& suffix) {
  nn::Variable variable{.name = variable_.name + "/" + suffix,
                        .shape = variable_.shape,
                        .initializer = nn::zeros(),
                        .shard = variable_.shard};
  if (variable.shard.has_value()) variable.shape = {variable.shard->size()};
  Value* table = context_.state(std::move(variable));
  Value* rows = rows_of(table);
  tables_[rows] = table;
  return rows;
}

std::vector<Value*> UpdateContext::norms(const std::vector<Value*>& tensors) {
  std::vector<Value*> sums;
  for (Value* tensor : tensors) sums.push_back(ops::reduce_sum(ops::square(tensor)));
  if (variable_.shard.has_value()) {
    sums = ops::all_reduce(sums, {.ranks = variable_.shard->ranks});
    sums_over_ranks_.push_back(sums.front()->producer());
  }
  for (Value*& sum : sums) sum = ops::sqrt(sum);
  return sums;
}

void UpdateContext::update(Value* state, Value* next) {
  Value* table = tables_.at(state);
  context_.update(table, with_rows(table, next));
}

}  // namespace tessera::optim
