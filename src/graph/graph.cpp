#include "tessera/graph/graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/order_labels.h"
#include "tessera/graph/operator.h"

#include "graph/initial_value.h"

namespace tessera {

std::string_view to_string(InputRole role) {
  switch (role) {
    case InputRole::input:
      return "input";
    case InputRole::parameter:
      return "parameter";
    case InputRole::state:
      return "state";
    case InputRole::constant:
      return "constant";
  }
  return "?";
}

const std::string& Node::operator_name() const {
  return schema_->name;
}

Value* Node::operand(size_t specification) const {
  const std::optional<size_t> found = place(specification);
  return found.has_value() ? inputs_[*found] : nullptr;
}

const InputSpecification& Node::specification(size_t place) const {
  return schema_->operand(places_.specification(place));
}

std::vector<Value*> Node::operands(std::span<Value* const> inputs) const {
  std::vector<Value*> result(inputs.begin(), inputs.end());
  for (size_t left_out : places_.left_out())
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(left_out), nullptr);
  return result;
}

const Graph* Node::body() const {
  return schema_->operator_class == OperatorClass::fused ? bodies_.front().get() : nullptr;
}

Value* Graph::add_input(InputRole role, const std::string& name, TensorType type,
                        std::optional<Tensor> initial) {
  check_type(type);
  if (initial.has_value()) check_initial_value(role, name, type, *initial);
  require(!names_.contains(name), ErrorCode::invalid_graph, "graph '{}' already has a value named '{}'",
          name_, name);
  auto value = std::make_unique<Value>();
  value->name_ = name;
  value->type_ = std::move(type);
  value->graph_ = this;
  value->index_ = inputs_.size();
  value->role_ = role;
  if (initial.has_value()) value->initial_ = std::make_unique<const Tensor>(std::move(*initial));
  names_.emplace(name, value.get());
  inputs_.push_back(std::move(value));
  return inputs_.back().get();
}

std::string Graph::unique_name(const std::string& wanted) {
  if (!names_.contains(wanted)) return wanted;
  int64_t& counter = name_counters_[wanted];
  std::string name;
  do {
    name = fmt::format("{}_{}", wanted, ++counter);
  } while (names_.contains(name));
  return name;
}

Node* Graph::add_node(std::string_view operator_name, const std::vector<Value*>& operands,
                      Attributes attributes, const std::string& name, std::unique_ptr<Graph> body) {
  std::vector<std::unique_ptr<Graph>> bodies;
  bodies.push_back(std::move(body));
  return add_node(operator_name, operands, std::move(attributes), name, std::move(bodies));
}

Node* Graph::add_node(std::string_view operator_name, const std::vector<Value*>& operands,
                      Attributes attributes, const std::string& name,
                      std::vector<std::unique_ptr<Graph>> bodies) {
  const OperatorSchema& schema = OperatorRegistry::instance().get(operator_name);
  const OperandPlaces places(operands);
  std::vector<Value*> inputs;
  std::vector<TensorType> types;
  for (Value* operand : operands) {
    if (operand == nullptr) continue;
    require(operand->graph_ == this, ErrorCode::invalid_graph,
            "node '{}' of operator '{}' reads a value of another graph", name, operator_name);
    inputs.push_back(operand);
    types.push_back(operand->type_);
  }
  const std::string node_name = unique_name(
      !name.empty() ? name : (name_scope_.empty() ? schema.name : name_scope_ + "/" + schema.name));
  const std::vector<TensorType> outputs =
      infer_outputs(schema, node_name, {places, types, bodies}, attributes);

  auto node = std::make_unique<Node>();
  node->schema_ = &schema;
  node->inputs_ = std::move(inputs);
  node->places_ = places;
  node->attributes_ = std::move(attributes);
  node->bodies_ = std::move(bodies);
  node->graph_ = this;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto value = std::make_unique<Value>();
    value->name_ =
        i == 0 ? node_name
               : unique_name(fmt::format("{}.{}", node_name,
                                         i < schema.outputs.size() ? schema.outputs[i] : std::to_string(i)));
    value->type_ = outputs[i];
    value->graph_ = this;
    value->producer_ = node.get();
    value->index_ = i;
    names_.emplace(value->name_, value.get());
    node->outputs_.push_back(std::move(value));
  }
  Node* result = node.get();
  for (size_t i = 0; i < result->inputs_.size(); ++i) result->inputs_[i]->uses_.push_back({result, i});
  result->position_ = nodes_.insert(insertion_, std::move(node));
  label_inserted(nodes_, result->position_, std::next(result->position_),
                 [](auto& listed) -> int64_t& { return listed->label_; });
  return result;
}

void Graph::set_end(Value::End end, Value* value) {
  Value*& current = end.is_update ? updates_.at(end.index).next : outputs_.at(end.index).value;
  if (current != nullptr) {
    std::erase_if(current->ends_, [&](const Value::End& other) {
      return other.is_update == end.is_update && other.index == end.index;
    });
  }
  current = value;
  if (value != nullptr) value->ends_.push_back(end);
}

void Graph::add_output(const std::string& name, Value* value) {
  outputs_.push_back({name, nullptr});
  set_output(outputs_.size() - 1, value);
}

void Graph::set_output(size_t index, Value* value) {
  set_end({.is_update = false, .index = index}, value);
}

void Graph::erase_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) set_output(i, nullptr);
  outputs_.clear();
}

void Graph::set_update(size_t index, Value* next) {
  set_end({.is_update = true, .index = index}, next);
}

void Graph::add_update(Value* state, Value* next) {
  require(state->may_be_updated(), ErrorCode::invalid_graph,
          "'{}' cannot be updated: it is no parameter or state of graph '{}'", state->name_, name_);
  require(state->type_ == next->type_, ErrorCode::invalid_graph, "'{}' is {}, its update '{}' is {}",
          state->name_, to_string(state->type_), next->name_, to_string(next->type_));
  require(!state->is_updated_, ErrorCode::invalid_graph,
          "'{}' is updated twice: it has an update already, and '{}' would be lost or win by chance",
          state->name_, next->name_);
  state->is_updated_ = true;
  updates_.push_back({state, nullptr});
  set_update(updates_.size() - 1, next);
}

void Graph::remove_use(Value* value, Node* node, size_t index) {
  std::erase_if(value->uses_, [&](const Use& use) { return use.node == node && use.index == index; });
}

void Graph::set_input(Node* node, size_t index, Value* value) {
  Value* old = node->inputs_.at(index);
  require(old->type_ == value->type_, ErrorCode::internal, "'{}' ({}) cannot stand for '{}' ({}) in '{}'",
          value->name_, to_string(value->type_), old->name_, to_string(old->type_), node->name());
  remove_use(old, node, index);
  node->inputs_[index] = value;
  value->uses_.push_back({node, index});
}

void Graph::replace_all_uses(Value* old, Value* replacement) {
  require(old->type_ == replacement->type_, ErrorCode::internal, "'{}' ({}) cannot replace '{}' ({})",
          replacement->name_, to_string(replacement->type_), old->name_, to_string(old->type_));
  if (old == replacement) return;
  for (const Use& use : old->uses_) {
    use.node->inputs_[use.index] = replacement;
    replacement->uses_.push_back(use);
  }
  old->uses_.clear();
  for (const Value::End& end : std::exchange(old->ends_, {})) set_end(end, replacement);
}

bool Graph::is_used(const Value* value) const {
  return !value->uses_.empty() || value->is_output_or_update() || value->is_updated_;
}

void Graph::erase(Node* node) {
  for (const auto& output : node->outputs_) {
    require(!is_used(output.get()), ErrorCode::internal, "'{}' is still read and cannot be erased",
            output->name_);
  }
  for (size_t i = 0; i < node->inputs_.size(); ++i) remove_use(node->inputs_[i], node, i);
  for (const auto& output : node->outputs_) names_.erase(output->name_);
  if (insertion_ == node->position_) ++insertion_;
  nodes_.erase(node->position_);
}

void Graph::erase_input(Value* input) {
  require(input->producer_ == nullptr && !is_used(input), ErrorCode::internal, "'{}' is still read",
          input->name_);
  names_.erase(input->name_);
  inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(input->index_));
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->index_ = i;
}

void Graph::insert_before(Node* node) {
  insertion_ = node == nullptr ? nodes_.end() : node->position_;
}

Node* Graph::insertion_point() const {
  return std::list<std::unique_ptr<Node>>::const_iterator(insertion_) == nodes_.end() ? nullptr
                                                                                      : insertion_->get();
}

void Graph::sort() {
  if (!nodes_.empty()) sort(nodes_.front().get(), nodes_.back().get());
}

void Graph::sort(const Node* first, const Node* last) {
  std::vector<Node*> order;
  std::unordered_set<const Node*> placed;
  std::unordered_set<const Node*> open;  // waits for what it reads
  std::vector<Node*> waiting;            // each but the first is read by the one before it
  const auto missing_input = [&](const Node& node) -> Node* {
    for (const Value* input : node.inputs_) {
      Node* producer = input->producer_;
      if (producer == nullptr || producer->stands_before(*first) || placed.contains(producer)) continue;
      return producer;
    }
    return nullptr;
  };
  const auto end = std::next(last->position_);
  for (auto position = first->position_; position != end; ++position) {
    if (!placed.contains(position->get())) waiting.push_back(position->get());
    while (!waiting.empty()) {
      Node* node = waiting.back();
      if (Node* earlier = missing_input(*node)) {
        open.insert(node);
        require(!open.contains(earlier), ErrorCode::internal, "graph '{}' has a cycle through '{}'", name_,
                earlier->name());
        waiting.push_back(earlier);
        continue;
      }
      waiting.pop_back();
      placed.insert(node);
      order.push_back(node);
    }
  }
  std::vector<int64_t> labels;
  for (const Node* node : order) labels.push_back(node->label_);
  std::sort(labels.begin(), labels.end());
  for (size_t i = 0; i < order.size(); ++i) {
    nodes_.splice(end, nodes_, order[i]->position_);
    order[i]->label_ = labels[i];
  }
}

Value* Graph::find(std::string_view name) const {
  const auto found = names_.find(std::string(name));
  return found == names_.end() ? nullptr : found->second;
}

Value* Graph::find_input(std::string_view name) const {
  Value* value = find(name);
  return value != nullptr && value->producer_ == nullptr ? value : nullptr;
}

void Graph::rename(Value* value, const std::string& name) {
  if (value->name_ == name) return;
  require(!names_.contains(name), ErrorCode::invalid_graph, "graph '{}' already has a value named '{}'",
          name_, name);
  names_.erase(value->name_);
  value->name_ = name;
  names_.emplace(name, value);
}

}  // namespace tessera
