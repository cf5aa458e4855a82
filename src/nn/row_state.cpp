#include "tessera/nn/row_state.h"

#include "tessera/ops/functions.h"

namespace tessera::nn {

RowState::RowState(Context& context, const std::string& name, SymbolicShape shape) {
  Variable variable{.name = name, .initializer = zeros(), .advances = true, .of_rows = true};
  for (const Dimension& extent : shape) variable.shape.push_back(extent.value());
  if (context.ranks().count > 1) {
    Shard shard{variable.shape, context.ranks().rank, context.ranks().count};
    shard.whole.front() *= shard.ranks;
    variable.shape = {shard.size()};
    variable.shard = std::move(shard);
  }
  state_ = context.state(std::move(variable));
  value_ = state_->shape() == shape ? state_ : ops::reshape(state_, std::move(shape));
}

void RowState::update(Context& context, Value* next) const {
  Value* wide = ops::cast(next, DataType::fp32);
  context.update(state_, wide->shape() == state_->shape() ? wide : ops::reshape(wide, state_->shape()));
}

}  // namespace tessera::nn
