#include "tessera/nn/context.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/permutation.h"
#include "tessera/base/random.h"
#include "tessera/ops/functions.h"

namespace tessera::nn {
namespace {

// result[index] = x[index permuted]: axis i of the result is axis permutation[i] of x.
Tensor permute(const Tensor& x, const std::vector<int64_t>& permutation) {
  Shape shape;
  std::vector<int64_t> strides;  // of x, in the order of the result's axes
  const std::vector<int64_t> own_strides = row_major_strides(x.shape());
  for (int64_t axis : permutation) {
    shape.push_back(x.shape()[static_cast<size_t>(axis)]);
    strides.push_back(own_strides[static_cast<size_t>(axis)]);
  }
  Tensor result(x.data_type(), shape);
  if (result.size() == 0) return result;
  const auto width = static_cast<int64_t>(size_of(x.data_type()));
  const auto* source = static_cast<const char*>(x.raw());
  auto* target = static_cast<char*>(result.raw());
  const size_t last = shape.size() - 1;
  std::vector<int64_t> index(shape.size(), 0);  // of the present row of the last axis
  for (int64_t row = 0; row < result.size() / shape[last]; ++row) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < last; ++axis) offset += index[axis] * strides[axis];
    for (int64_t i = 0; i < shape[last]; ++i, target += width) {
      std::memcpy(target, source + (offset + i * strides[last]) * width, static_cast<size_t>(width));
    }
    for (size_t axis = last; axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  return result;
}

}  // namespace

Tensor from_file_layout(const Variable& variable, const Tensor& stored) {
  const Shape& own = variable.shard.has_value() ? variable.shard->whole : variable.shape;
  const Shape& expected = variable.file_shape.empty() ? own : variable.file_shape;
  require(stored.shape() == expected, ErrorCode::invalid_file, "'{}' has the shape {}, expected {}",
          variable.name, to_string(stored.shape()), to_string(expected));
  Tensor value = stored.data_type() == variable.data_type ? stored.clone() : stored.cast(variable.data_type);
  if (variable.shard.has_value()) return part_of(*variable.shard, value);
  if (variable.permutation.empty()) return value;
  return permute(value.reshape(variable.file_view), variable.permutation).reshape(variable.shape);
}

Tensor to_file_layout(const Variable& variable, const Tensor& value) {
  if (variable.permutation.empty()) return value.clone();
  Shape permuted;
  for (const int64_t axis : variable.permutation)
    permuted.push_back(variable.file_view[static_cast<size_t>(axis)]);
  return permute(value.reshape(permuted), inverse_permutation(variable.permutation))
      .reshape(variable.file_shape);
}

Context::Scope::Scope(Context& context, std::string_view name)
    : context_(context), before_(context.scope_.size()) {
  context_.scope_ += name;
  context_.scope_ += '.';
}

// Of all scopes, until it ends.
class Context::Outside {
 public:
  explicit Outside(Context& context)
      : context_(context),
        scope_(std::exchange(context.scope_, "")),
        transforms_now_(context.transforms_now_) {}
  ~Outside() {
    context_.scope_ = std::move(scope_);
    context_.transforms_now_ = transforms_now_;
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  Context& context_;
  std::string scope_;
  bool transforms_now_;
};

Value* Context::variable(Variable variable) {
  variable.name.insert(0, scope_);
  if (Value* known = graph_.find_input(variable.name)) {
    require(known->shape() == to_symbolic(variable.shape), ErrorCode::invalid_argument,
            "variable '{}' is shared with the shapes {} and {}", variable.name, to_string(known->shape()),
            to_string(variable.shape));
    const auto own = transformed_.find(known);
    return own == transformed_.end() ? known : own->second;
  }
  const bool is_parameter = variable.role == InputRole::parameter && variable.trainable;
  if (is_parameter && begins_frozen(variable.name)) variable.trainable = false;
  if (!variable.trainable) variable.role = InputRole::constant;
  Value* value =
      graph_.add_input(variable.role, variable.name, {variable.data_type, to_symbolic(variable.shape)});
  variables_.push_back(variable);
  const bool is_read_as_it_is = !is_parameter || transforms_.empty() || transforms_now_;
  return is_read_as_it_is ? value : transformed(variable, value);
}

bool Context::begins_frozen(std::string_view whole_name) const {
  return std::any_of(frozen_.begin(), frozen_.end(),
                     [&](const std::string& prefix) { return whole_name.starts_with(prefix); });
}

bool Context::is_frozen(std::string_view name) const {
  return begins_frozen(scope_ + std::string(name));
}

void Context::transform(Transform function) {
  transforms_.push_back(std::move(function));
}

Value* Context::transformed(const Variable& parameter, Value* value) {
  const Outside outside(*this);
  transforms_now_ = true;
  Value* result = value;
  for (const Transform& function : transforms_) {
    result = function(parameter, result);
    require(result->type() == value->type(), ErrorCode::invalid_argument,
            "a transform makes {} of the parameter '{}', which is {}", to_string(result->type()),
            parameter.name, to_string(value->type()));
  }
  transformed_[value] = result;
  return result;
}

Value* Context::parameter(const std::string& name, Shape shape, Initializer initializer, bool decays) {
  return variable({.name = name,
                   .role = InputRole::parameter,
                   .shape = std::move(shape),
                   .initializer = std::move(initializer),
                   .decays = decays});
}

Value* Context::state(const std::string& name, Shape shape, Initializer initializer) {
  return state({.name = name, .shape = std::move(shape), .initializer = std::move(initializer)});
}

Value* Context::state(Variable variable) {
  variable.role = InputRole::state;
  variable.decays = false;
  Value* value = this->variable(std::move(variable));
  const auto newest = newest_.find(value->name());
  return newest == newest_.end() ? value : newest->second;
}

void Context::update(Value* state, Value* next) {
  const auto pending = updated_.find(state);
  const size_t place = pending == updated_.end() ? graph_.updates().size() : pending->second;
  Value* root = pending == updated_.end() ? state : graph_.updates()[place].state;
  if (!training() || begins_frozen(root->name())) {
    const auto advances = [&](const Variable& known) { return known.name == root->name() && known.advances; };
    if (std::none_of(variables_.begin(), variables_.end(), advances)) return;
  }
  if (pending == updated_.end()) {
    graph_.add_update(state, next);
  } else {
    graph_.set_update(place, next);
    updated_.erase(pending);
  }
  newest_[root->name()] = next;
  updated_[next] = place;
}

Value* Context::random_counter() {
  if (Value* known = graph_.find_input("random_counter")) return known;
  const Outside outside(*this);
  return variable({.name = "random_counter",
                   .role = InputRole::state,
                   .shape = {2},
                   .initializer = zeros(),
                   .decays = false,
                   .data_type = DataType::int64});
}

SymbolicShape Context::whole_batch(SymbolicShape rows) const {
  if (!rows.empty()) rows.front() = rows.front() * Dimension(ranks_.count);
  return rows;
}

Value* Context::own_rows(Value* whole) const {
  const SymbolicShape& shape = whole->shape();
  if (ranks_.count == 1 || shape.empty()) return whole;
  const int64_t rows = shape.front().value() / ranks_.count;
  std::vector<int64_t> starts(shape.size(), 0);
  std::vector<int64_t> limits(shape.size(), ops::kWholeAxis);
  starts.front() = ranks_.rank * rows;
  limits.front() = starts.front() + rows;
  return ops::slice(whole, starts, limits);
}

int64_t Context::next_random_stream() {
  const int64_t number = random_streams_[scope_]++;
  if (scope_.empty()) return number;
  // From the name, so that networks that share a scope have the same streams, whatever else they hold.
  return static_cast<int64_t>(static_cast<uint32_t>(hash_name(scope_.data(), scope_.size())) +
                              static_cast<uint32_t>(number));
}

}  // namespace tessera::nn
