#include "graph_fuzz/generator.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera::testing {

int64_t Generator::rows(const Value* x) {
  const Shape shape = shape_of(x);
  return element_count(Shape(shape.begin(), shape.end() - 1));
}

Value* Generator::any() {
  const auto recent = std::min<int64_t>(8, static_cast<int64_t>(pool_.size()));
  return pool_[pool_.size() - 1 - static_cast<size_t>(below(recent))];
}

Value* Generator::of_rank(int64_t rank) {
  std::vector<Value*> fitting;
  for (Value* value : pool_) {
    if (value->type().rank() == rank) fitting.push_back(value);
  }
  return fitting.empty() ? nullptr : pick(fitting);
}

Value* Generator::partner(Value* x) {
  if (chance(25)) {
    Shape shape = chance(50) && x->type().rank() > 0 ? Shape{channels(x)} : Shape{};
    if (chance(30)) {
      shape = shape_of(x);
      for (int64_t& extent : shape) extent = chance(50) ? 1 : extent;
    }
    return parameter(shape);
  }
  std::vector<Value*> fitting{x};
  for (Value* value : pool_) {
    try {
      if (broadcast_shapes(shape_of(value), shape_of(x)) == shape_of(x)) fitting.push_back(value);
    } catch (const Error&) {
      continue;
    }
  }
  return pick(fitting);
}

Value* Generator::squeeze(Value* x, const ExampleInput& range) {
  if (range.low < 0 && range.high > 0 && chance(70)) return x;
  return ops::add(ops::multiply(ops::sigmoid(x), range.high - range.low), range.low);
}

// Any elementwise operator of the registry on fp32, with values from the range of its first example.
Value* Generator::elementwise() {
  static const std::vector<const OperatorSchema*> schemas = [] {
    std::vector<const OperatorSchema*> list;
    for (const OperatorSchema* schema : OperatorRegistry::instance().all()) {
      if (schema->operator_class != OperatorClass::elementwise || schema->examples.empty()) continue;
      const auto& inputs = schema->examples.front().inputs;
      if (std::all_of(inputs.begin(), inputs.end(),
                      [](const ExampleInput& input) { return input.data_type == DataType::fp32; }))
        list.push_back(schema);
    }
    return list;
  }();
  const OperatorSchema& schema = *pick(schemas);
  const OperatorExample& example = schema.examples.front();
  Value* x = any();
  std::vector<Value*> inputs;
  for (const ExampleInput& range : example.inputs) {
    inputs.push_back(squeeze(inputs.empty() ? x : partner(x), range));
  }
  return ops::apply(schema.name, inputs, example.attributes)->output();
}

Value* Generator::activation(Value* x) {
  switch (below(5)) {
    case 0:
      return ops::relu(x);
    case 1:
      return ops::gelu(x, chance(50));
    case 2:
      return ops::silu(x);
    case 3:
      return ops::mish(x);
    default:
      return x;
  }
}

// Activations one after the other, of which each is read several times.
Value* Generator::chain() {
  Value* x = any();
  for (int64_t length = 2 + below(5); length > 0; --length) {
    Value* y = activation(x);
    switch (below(4)) {
      case 0:
        x = ops::multiply(y, ops::sigmoid(x));
        break;
      case 1:
        x = ops::add(y, ops::multiply(x, ops::multiply(y, -0.5)));
        break;
      case 2:
        x = ops::multiply(y, partner(y));
        break;
      default:
        x = y;
    }
  }
  return x;
}

Value* Generator::chosen() {
  Value* x = any();
  Value* y = partner(x);
  Value* condition =
      chance(50) ? ops::less(x, y) : ops::greater_equal(x, ops::add(ops::multiply(y, 0.5), 0.125));
  if (chance(30)) condition = ops::logical_not(condition);
  if (chance(20)) condition = ops::logical_and(condition, ops::less(ops::absolute(x), ops::add(x, 1.5)));
  return chance(80) ? ops::select(condition, x, y) : ops::cast(condition, DataType::fp32);
}

// Some work in another type.
Value* Generator::casts() {
  Value* x = any();
  const DataType type = pick<DataType>({DataType::fp16, DataType::bf16, DataType::fp64});
  Value* y = ops::cast(x, type);
  if (chance(50)) y = activation(y);
  if (chance(50)) y = ops::add(y, ops::cast(partner(x), type));
  if (chance(30) && y->type().rank() > 0) y = ops::reduce_sum(y, {.axes = {0}, .keep_dimensions = true});
  return ops::cast(y, DataType::fp32);
}

// Given ones, counted ones, or rounded ones.
Value* Generator::integers() {
  if (!integers_.empty() && chance(50)) return pick(integers_);
  switch (below(3)) {
    case 0:
      return add_input(InputRole::input, {1 + below(4), 1 + below(9)}, -9, 10, DataType::int32);
    case 1:
      return ops::iota(*graph_, {1 + below(4), 1 + below(9)}, below(2), DataType::int32);
    default:
      return ops::cast(ops::multiply(any(), 4), DataType::int32);
  }
}

Value* Generator::integer_work() {
  Value* x = integers();
  Value* y = chance(50) ? ops::constant_like(x, static_cast<double>(1 + below(5))) : x;
  switch (below(6)) {
    case 0:
      x = ops::add(x, y);
      break;
    case 1:
      x = ops::multiply(x, y);
      break;
    case 2:
      x = ops::divide(x, y);
      break;
    case 3:
      x = ops::maximum(ops::negate(x), y);
      break;
    case 4:
      x = ops::select(ops::less_equal(x, y), ops::subtract(x, y), y);
      break;
    default:
      x = ops::reduce_max(x, {.axes = {}, .keep_dimensions = true});
  }
  integers_.push_back(x);
  return ops::multiply(ops::cast(x, DataType::fp32), 0.125);
}

// As of a network that tells true from false.
Value* Generator::logistic_loss() {
  Value* x = any();
  switch (below(3)) {
    case 0:
      return ops::binary_cross_entropy(x, ops::zeros_like(x));
    case 1:
      return ops::binary_cross_entropy(x, ops::constant_like(x, 1));
    default:
      return ops::binary_cross_entropy(x, ops::sigmoid(ops::broadcast_to(partner(x), x->shape())));
  }
}

Value* Generator::reduction() {
  Value* x = any();
  ops::ReduceOptions options{.axes = {}, .keep_dimensions = chance(50)};
  for (int64_t axis = 0; axis < x->type().rank(); ++axis) {
    if (chance(50)) options.axes.push_back(axis);
  }
  switch (below(5)) {
    case 0:
      return ops::reduce_sum(x, options);
    case 1:
      return ops::reduce_mean(x, options);
    case 2:
      return ops::reduce_max(x, options);
    case 3:
      return ops::reduce_min(x, options);
    default:
      return x->type().rank() == 0 || channels(x) == 0 ? nullptr : ops::cast(ops::argmax(x), DataType::fp32);
  }
}

Value* Generator::noise() {
  if (random_counter_ == nullptr) return nullptr;
  Value* x = any();
  if (chance(70)) return ops::dropout(x, random_counter_, 0.3, ++streams_);
  return ops::add(x, ops::random_normal(random_counter_, x->shape(), ++streams_));
}

// States of several kinds: each becomes something else at the end of a run.
Value* Generator::memory() {
  Value* x = any();
  const Shape shape = shape_of(x);
  Value* state = add_input(InputRole::state, shape, -1, 1);
  switch (below(6)) {
    case 0:  // an average
      update(state, ops::add(ops::multiply(state, 0.9), ops::multiply(x, 0.1)));
      break;
    case 1:  // what there was, perhaps an input
      update(state, x);
      break;
    case 2: {  // two that change places
      Value* other = add_input(InputRole::state, shape, -1, 1);
      update(state, other);
      update(other, state);
      break;
    }
    case 3: {  // a count beside it
      Value* count = add_input(InputRole::state, {}, 0, 9, DataType::int32);
      update(count, ops::add(count, ops::constant_like(count, 1)));
      update(state, ops::multiply(state, ops::cast(count, DataType::fp32)));
      break;
    }
    case 4:  // what a parameter was
      update(state, parameter(shape));
      break;
    default:  // nothing
      break;
  }
  return ops::add(x, state);
}

}  // namespace tessera::testing
