#include "graph_fuzz/random_graph.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/passes/differentiate.h"

#include "graph_fuzz/generator.h"

namespace tessera::testing {
namespace {

constexpr double kModerate = 100;  // larger results are thrown away
constexpr int64_t kMaximumElements = 8192;

}  // namespace

RandomGraph random_graph(uint64_t seed, bool frozen) {
  return Generator(seed, frozen).make();
}

RandomGraph Generator::make() {
  draw_inputs();
  if (chance(40)) {
    random_counter_ = add_input(InputRole::state, {2}, 0, 9, DataType::int64);
    update(random_counter_,
           ops::add(random_counter_, ops::constant(*graph_, Tensor::from<int64_t>({2}, {0, 1}))));
  }
  for (int64_t wanted = 4 + below(18); wanted > 0; --wanted) grow();
  finish();
  return {std::move(graph_), std::move(given_)};
}

void Generator::draw_inputs() {
  for (int64_t i = below(2); i >= 0; --i) input({1 + below(3), 3 + below(6), 3 + below(6), 1 + below(8)});
  for (int64_t i = below(2); i >= 0; --i) input({1 + below(5), 1 + below(20)});
  if (chance(15)) input({1 + below(2), 12 + below(6), 16, 8 * (1 + below(2))});  // whole vectors
  if (chance(15)) input({1 + below(3), 3 + below(12), 1 + below(6)});
  if (chance(5)) input({1 + below(2), 2 + below(3), 2 + below(3), 2 + below(3), 1 + below(4)});
  if (chance(15)) input(pick<Shape>({{}, {1}, {1, 1}, {1, 1, 1, 1}}));
  if (chance(4)) input(pick<Shape>({{0}, {0, 5}, {3, 0}, {0, 4, 4, 3}, {2, 0, 3, 4}, {2, 3, 3, 0}}));
}

Value* Generator::add_input(InputRole role, const Shape& shape, double low, double high, DataType type) {
  // Nodes of the operator "constant" are called so.
  const std::string_view kind = role == InputRole::constant ? "fixed" : to_string(role);
  const std::string name = fmt::format("{}_{}", kind, graph_->inputs().size());
  Value* value = graph_->add_input(role, name, {type, to_symbolic(shape)});
  Tensor tensor(type, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double number = low + (high - low) * random_.uniform(counter_++);
    tensor.set(i, is_floating(type) ? number : std::floor(number));
  }
  given_[name] = tensor;
  computed_[value] = tensor;
  return value;
}

void Generator::input(const Shape& shape) {
  pool_.push_back(add_input(InputRole::input, shape, -1, 1));
  sources_.push_back(pool_.back());
}

// One in ten never changes: nothing is differentiated to it.
Value* Generator::parameter(const Shape& shape, double bound, double middle) {
  const InputRole role = chance(10) ? InputRole::constant : InputRole::parameter;
  Value* value = add_input(role, shape, middle - bound, middle + bound);
  if (role == InputRole::parameter) sources_.push_back(value);
  return value;
}

void Generator::update(Value* state, Value* next) {
  if (!frozen_) updates_.push_back({state, next});
}

// Tries one builder; what it made stays when all of it is finite and moderate.
void Generator::grow() {
  using Builder = Value* (Generator::*)();
  static const std::vector<Builder> builders{
      &Generator::elementwise, &Generator::elementwise, &Generator::elementwise,  &Generator::chain,
      &Generator::chosen,      &Generator::casts,       &Generator::integer_work, &Generator::logistic_loss,
      &Generator::reduction,   &Generator::product,     &Generator::product,      &Generator::convolution,
      &Generator::convolution, &Generator::convolution, &Generator::transposed,   &Generator::norm,
      &Generator::norm,        &Generator::pooled_norm, &Generator::pooling,      &Generator::movement,
      &Generator::movement,    &Generator::indexing,    &Generator::noise,        &Generator::memory,
      &Generator::parts,       &Generator::parts};
  const size_t nodes_before = graph_->nodes().size();
  const size_t updates_before = updates_.size();
  const size_t extra_before = extra_.size();
  const size_t integers_before = integers_.size();
  Value* result = nullptr;
  try {
    result = (this->*pick(builders))();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_graph) throw;  // shapes that do not fit: try another
  }
  std::vector<Node*> added;
  for (auto node = std::next(graph_->nodes().begin(), static_cast<int64_t>(nodes_before));
       node != graph_->nodes().end(); ++node) {
    added.push_back(node->get());
  }
  const bool sound = result != nullptr && result->type().element_count() <= kMaximumElements &&
                     std::all_of(added.begin(), added.end(), [&](Node* node) { return compute(*node); });
  if (!sound) {
    updates_.resize(updates_before);
    extra_.resize(extra_before);
    integers_.resize(integers_before);
    for (size_t i = added.size(); i-- > 0;) graph_->erase(added[i]);
    return;
  }
  for (Node* node : added) spread_flat(*node);
  if (result->data_type() == DataType::fp32) pool_.push_back(result);
}

bool Generator::compute(const Node& node) {
  std::vector<const Tensor*> inputs;
  for (const Value* value : node.inputs()) inputs.push_back(&computed_.at(value));
  const std::vector<Tensor> outputs = run_reference(node, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    computed_[node.output(i)] = outputs[i];
    if (!is_floating(outputs[i].data_type())) continue;
    for (double value : outputs[i].to_doubles()) {
      if (!(std::abs(value) < kModerate)) return false;
    }
  }
  return true;
}

// What has no gradient must not reach the loss, nor what is made of it. Nothing flows back into a source, so
// that it needs none, but dropout hands on that of its operand.
void Generator::spread_flat(const Node& node) {
  const bool is_source = node.schema().operator_class == OperatorClass::source;
  const bool has_none = (!node.schema().gradient && !node.schema().decompose) ||
                        (node.operator_name() == "cast" && !is_floating(node.input(0)->data_type()));
  const bool of_flat = std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* value) {
    return is_floating(value->data_type()) && flat_.contains(value);
  });
  if (!of_flat && (is_source || !has_none)) return;
  for (const auto& output : node.outputs()) flat_.insert(output.get());
}

Value* Generator::make_loss() {
  // Of no elements there is no mean.
  const auto level = [](Value* x) {
    return x->type().element_count() > 0 ? ops::reduce_mean(ops::tanh(x)) : ops::reduce_sum(x);
  };
  Value* loss = level(pool_.front());
  for (size_t i = pool_.size(); i-- > 1;) {
    if (flat_.contains(pool_[i]) || (i + 1 < pool_.size() && chance(60))) continue;
    loss = ops::add(loss, level(pool_[i]));
  }
  Value* logits = of_rank(2);
  if (logits == nullptr || flat_.contains(logits) || logits->type().element_count() == 0 || chance(50))
    return loss;
  Value* labels = add_input(InputRole::input, {shape_of(logits)[0]}, 0, static_cast<double>(channels(logits)),
                            DataType::int32);
  return ops::add(loss, ops::reduce_mean(ops::cross_entropy(logits, labels, {.smoothing = 0.1})));
}

void Generator::train(Value* parameter, Value* gradient) {
  const auto updated = [&](const Graph::Update& update) { return update.state == parameter; };
  if (std::any_of(updates_.begin(), updates_.end(), updated)) return;
  Value* step = gradient;
  if (chance(30)) {
    Value* momentum = add_input(InputRole::state, shape_of(parameter), -1, 1);
    step = ops::add(ops::multiply(momentum, 0.9), gradient);
    update(momentum, step);
  }
  update(parameter, ops::subtract(parameter, ops::multiply(step, 0.1)));
}

// To parameters and inputs, and to values between, whoever made them.
void Generator::differentiate_loss(Value* loss, const std::string& name) {
  std::vector<Value*> sources;
  for (Value* source : sources_) {
    if (!chance(10)) sources.push_back(source);
  }
  for (Value* value : pool_) {
    if (value->producer() != nullptr && !flat_.contains(value) && chance(8)) sources.push_back(value);
  }
  Value* scale = chance(20) ? add_input(InputRole::state, {}, 1, 4) : nullptr;
  const std::vector<Value*> gradients = differentiate(*graph_, loss, sources, scale);
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool trained = sources[i]->producer() == nullptr && sources[i]->role() == InputRole::parameter;
    if (trained && !frozen_) train(sources[i], gradients[i]);
    if (!trained || chance(30)) graph_->add_output(fmt::format("{}_to_{}", name, i), gradients[i]);
  }
}

void Generator::add_outputs() {
  graph_->add_output("value_0", pool_.back());
  graph_->add_output("value_1", any());
  for (size_t i = 0; i < extra_.size(); ++i) graph_->add_output(fmt::format("part_{}", i), extra_[i]);
  if (chance(10)) graph_->add_output("input", pick(sources_));
  if (chance(10)) graph_->add_output("again", pool_.back());
  if (chance(5)) graph_->add_output("constant", ops::constant(*graph_, Tensor::from<float>({2}, {1, -3})));
  if (!integers_.empty() && chance(50)) graph_->add_output("integers", integers_.back());
}

void Generator::finish() {
  add_outputs();
  const int64_t losses = frozen_ ? below(2) : (chance(20) ? 2 + below(2) : 1);
  for (int64_t i = 0; i < losses; ++i) {
    Value* loss = make_loss();
    const std::string name = fmt::format("loss_{}", i);
    graph_->add_output(name, loss);
    differentiate_loss(loss, name);
  }
  for (const Graph::Update& update : updates_) graph_->add_update(update.state, update.next);
}

}  // namespace tessera::testing
