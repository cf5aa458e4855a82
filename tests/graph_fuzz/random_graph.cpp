#include "graph_fuzz/random_graph.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/passes/differentiate.h"

#include "graph_fuzz/generator.h"

namespace tessera::testing {
namespace {

constexpr double kModerate = 100;  // larger results are thrown away
constexpr int64_t kMaximumElements = 4096;

}  // namespace

RandomGraph random_graph(uint64_t seed) {
  return Generator(seed).make();
}

RandomGraph Generator::make() {
  for (int64_t i = below(2); i >= 0; --i) input({1 + below(3), 3 + below(6), 3 + below(6), 1 + below(8)});
  for (int64_t i = below(2); i >= 0; --i) input({1 + below(5), 1 + below(20)});
  if (chance(40)) {
    random_counter_ = add_input(InputRole::state, {2}, 0, 9, DataType::int64);
    Value* next = ops::add(random_counter_, ops::constant(*graph_, Tensor::from<int64_t>({2}, {0, 1})));
    updates_.push_back({random_counter_, next});
  }
  for (int64_t wanted = 4 + below(18); wanted > 0; --wanted) grow();
  finish();
  return {std::move(graph_), std::move(given_)};
}

Value* Generator::add_input(InputRole role, const Shape& shape, double low, double high, DataType type) {
  const std::string name = fmt::format("{}_{}", to_string(role), graph_->inputs().size());
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

Value* Generator::parameter(const Shape& shape, double bound, double middle) {
  sources_.push_back(add_input(InputRole::parameter, shape, middle - bound, middle + bound));
  return sources_.back();
}

// Tries one builder; what it made stays when all of it is finite and moderate.
void Generator::grow() {
  using Builder = Value* (Generator::*)();
  static const std::vector<Builder> builders{
      &Generator::elementwise, &Generator::elementwise, &Generator::elementwise, &Generator::chosen,
      &Generator::reduction,   &Generator::product,     &Generator::convolution, &Generator::convolution,
      &Generator::norm,        &Generator::pooling,     &Generator::movement,    &Generator::movement,
      &Generator::indexing,    &Generator::noise};
  const size_t nodes_before = graph_->nodes().size();
  const size_t updates_before = updates_.size();
  const size_t extra_before = extra_.size();
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

// What has no gradient must not reach the loss, nor what is made of it.
void Generator::spread_flat(const Node& node) {
  const bool flat = (!node.schema().gradient && !node.schema().decompose) ||
                    (node.operator_name() == "cast" && !is_floating(node.input(0)->data_type())) ||
                    std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* value) {
                      return is_floating(value->data_type()) && flat_.contains(value);
                    });
  if (!flat || node.schema().operator_class == OperatorClass::source) return;
  for (const auto& output : node.outputs()) flat_.insert(output.get());
}

Value* Generator::make_loss() {
  Value* loss = ops::reduce_mean(ops::tanh(pool_.front()));
  for (size_t i = pool_.size(); i-- > 1;) {
    if (flat_.contains(pool_[i]) || (i + 1 < pool_.size() && chance(60))) continue;
    loss = ops::add(loss, ops::reduce_mean(ops::tanh(pool_[i])));
  }
  Value* logits = of_rank(2);
  if (logits == nullptr || flat_.contains(logits) || chance(50)) return loss;
  Value* labels = add_input(InputRole::input, {shape_of(logits)[0]}, 0, static_cast<double>(channels(logits)),
                            DataType::int32);
  return ops::add(loss, ops::reduce_mean(ops::cross_entropy(logits, labels, {.smoothing = 0.1})));
}

void Generator::finish() {
  Value* loss = make_loss();
  graph_->add_output("value_0", pool_.back());
  graph_->add_output("value_1", any());
  for (size_t i = 0; i < extra_.size(); ++i) graph_->add_output(fmt::format("part_{}", i), extra_[i]);
  graph_->add_output("loss", loss);
  const std::vector<Value*> gradients = differentiate(*graph_, loss, sources_);
  for (size_t i = 0; i < sources_.size(); ++i) {
    const bool trained = sources_[i]->role() == InputRole::parameter;
    if (trained) {
      updates_.push_back({sources_[i], ops::subtract(sources_[i], ops::multiply(gradients[i], 0.1))});
    }
    if (!trained || chance(30)) graph_->add_output("gradient_" + sources_[i]->name(), gradients[i]);
  }
  for (const Graph::Update& update : updates_) graph_->add_update(update.state, update.next);
}

}  // namespace tessera::testing
