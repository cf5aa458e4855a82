#include "tessera/passes/fuse.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera {
namespace {

bool is_read_outside(const Value* value, const NodeSet& members) {
  return value->is_output_or_update() ||
         std::any_of(value->uses().begin(), value->uses().end(),
                     [&](const Use& use) { return !members.contains(use.node); });
}

std::vector<Node*> in_graph_order(std::vector<Node*> nodes) {
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->stands_before(*b); });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// Nodes outside that read what the node makes, and stand before `last`.
std::vector<Node*> readers_before(const Node& node, const Node& last, const NodeSet& members) {
  std::vector<Node*> result;
  for (const auto& output : node.outputs()) {
    for (const Use& use : output->uses()) {
      if (!members.contains(use.node) && use.node->stands_before(last)) result.push_back(use.node);
    }
  }
  return result;
}

bool is_number(const Value* value) {
  const Node* node = producer_of(value, "constant");
  return node != nullptr && node->attributes().tensor("value").size() == 1;
}

// Copies what a fused node stands for.
void copy_body(const Node& fused, Graph& target, ValueMapping& mapping) {
  for (const auto& input : fused.body()->inputs())
    mapping[input.get()] = mapping.at(fused.input(input->index()));
  copy_nodes(*fused.body(), target, mapping);
  const auto& outputs = fused.body()->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) mapping[fused.output(i)] = mapping.at(outputs[i].value);
}

// The values of a body in the order in which `role_values` counts them.
std::vector<const Value*> values_of(const Graph& body) {
  std::vector<const Value*> values;
  for (const auto& input : body.inputs()) values.push_back(input.get());
  for (const auto& node : body.nodes()) {
    for (const auto& output : node->outputs()) values.push_back(output.get());
  }
  return values;
}

struct Body {
  std::unique_ptr<Graph> graph;
  std::vector<Value*> inputs;     // what it reads from outside
  std::vector<FusionRole> roles;  // played by values of the body
};

// Copies the members into a graph of their own. Numbers are copied too, so that a body tells a relu's mask
// from another comparison.
Body make_body(const std::string& kind, const std::vector<Node*>& members, const std::vector<Value*>& outputs,
               const std::vector<FusionRole>& roles) {
  Body body{.graph = std::make_unique<Graph>(kind), .inputs = {}, .roles = {}};
  ValueMapping mapping;
  for (const Node* node : members) {
    for (Value* value : node->inputs()) {
      if (mapping.contains(value)) continue;
      if (is_number(value)) {
        copy_node(*value->producer(), *body.graph, mapping);
        continue;
      }
      mapping[value] = body.graph->add_input(InputRole::input, value->name(), value->type());
      body.inputs.push_back(value);
    }
    if (node->body() != nullptr && node->attributes().text("kind") == kind) {
      copy_body(*node, *body.graph, mapping);
      const std::vector<const Value*> values = values_of(*node->body());
      const std::vector<int64_t>& places = node->attributes().integers("role_values");
      for (size_t i = 0; i < places.size(); ++i)
        body.roles.push_back(
            {node->attributes().texts("roles")[i], mapping.at(values.at(static_cast<size_t>(places[i])))});
    } else {
      copy_node(*node, *body.graph, mapping);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    body.graph->add_output("y" + std::to_string(i), mapping.at(outputs[i]));
  for (const FusionRole& role : roles) body.roles.push_back({role.name, mapping.at(role.value)});
  return body;
}

Attributes fused_attributes(const std::string& kind, const Body& body) {
  Attributes attributes{{"kind", kind}};
  if (body.roles.empty()) return attributes;
  const std::vector<const Value*> values = values_of(*body.graph);
  std::vector<std::string> names;
  std::vector<int64_t> places;
  for (const FusionRole& role : body.roles) {
    names.push_back(role.name);
    places.push_back(std::find(values.begin(), values.end(), role.value) - values.begin());
  }
  attributes.set("roles", std::move(names));
  attributes.set("role_values", std::move(places));
  return attributes;
}

// The first node before the last member that reads a member's output: it must move after the fused node.
const Node* first_reader_between(const std::vector<Node*>& members, const NodeSet& set) {
  const Node* first = nullptr;
  for (const Node* member : members) {
    for (const Node* reader : readers_before(*member, *members.back(), set)) {
      if (first == nullptr || reader->stands_before(*first)) first = reader;
    }
  }
  return first;
}

// False when a way from one member to another leads through a node outside.
bool fuses_without_cycle(const std::vector<Node*>& members, const NodeSet& set) {
  const Node& last = *members.back();
  NodeSet seen;
  std::vector<const Node*> waiting(members.begin(), members.end());
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    for (const auto& output : node->outputs()) {
      for (const Use& use : output->uses()) {
        const bool is_member = set.contains(use.node);
        if (is_member && !set.contains(node)) return false;
        if (!is_member && use.node->stands_before(last) && seen.insert(use.node).second)
          waiting.push_back(use.node);
      }
    }
  }
  return true;
}

}  // namespace

Node* fuse_nodes(Graph& graph, const std::string& kind, const std::vector<Node*>& members,
                 const std::vector<Value*>& outputs, const std::vector<FusionRole>& roles) {
  const NodeSet set(members.begin(), members.end());
  require(!members.empty() && !outputs.empty(), ErrorCode::internal, "nothing to fuse");
  const std::vector<Node*> ordered = in_graph_order(members);
  const std::unordered_set<const Value*> exported(outputs.begin(), outputs.end());
  for (const Node* node : ordered) {
    for (const auto& output : node->outputs()) {
      require(exported.contains(output.get()) || !is_read_outside(output.get(), set), ErrorCode::internal,
              "'{}' cannot disappear into a fused node: it is read outside", output->name());
    }
  }
  const Node* reader_between = first_reader_between(ordered, set);
  require(reader_between == nullptr || fuses_without_cycle(ordered, set), ErrorCode::internal,
          "the fusion of '{}' would make a cycle", ordered.front()->name());

  Body body = make_body(kind, ordered, outputs, roles);
  Attributes attributes = fused_attributes(kind, body);
  Node* fused = nullptr;
  {
    const InsertionPoint here(graph, ordered.back());
    fused = graph.add_node("fused", body.inputs, std::move(attributes), outputs.front()->name(),
                           std::move(body.graph));
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) {
    names.push_back(outputs[i]->name());
    graph.replace_all_uses(outputs[i], fused->output(i));
  }
  std::vector<Node*> numbers;
  for (const Node* node : ordered) {
    for (const Value* input : node->inputs()) {
      if (is_number(input) && !set.contains(input->producer())) numbers.push_back(input->producer());
    }
  }
  for (auto node = ordered.rbegin(); node != ordered.rend(); ++node) graph.erase(*node);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (Node* number : numbers) {
    if (!graph.is_used(number->output())) graph.erase(number);
  }
  for (size_t i = 0; i < outputs.size(); ++i) graph.rename(fused->output(i), names[i]);
  if (reader_between != nullptr) graph.sort(reader_between, fused);
  return fused;
}

bool fuses_without_cycle(const std::vector<Node*>& members) {
  return fuses_without_cycle(in_graph_order(members), NodeSet(members.begin(), members.end()));
}

std::vector<const Value*> values_in_role(const Node& node, std::string_view role) {
  std::vector<const Value*> result;
  if (node.body() != nullptr) {
    const std::vector<std::string>& roles = node.attributes().texts("roles");
    if (std::find(roles.begin(), roles.end(), role) == roles.end()) return result;
    const std::vector<const Value*> values = values_of(*node.body());
    for (size_t i = 0; i < roles.size(); ++i) {
      if (roles[i] == role)
        result.push_back(values.at(static_cast<size_t>(node.attributes().integers("role_values")[i])));
    }
    return result;
  }
  const OperatorSchema& schema = node.schema();
  for (size_t i = 0; i < schema.inputs.size(); ++i) {
    if (schema.inputs[i].name == role && !schema.inputs[i].variadic && node.operand(i) != nullptr)
      result.push_back(node.operand(i));
  }
  for (size_t i = 0; i < std::min(schema.outputs.size(), node.outputs().size()); ++i) {
    if (schema.outputs[i] == role) result.push_back(node.output(i));
  }
  return result;
}

bool is_read(const Node& node) {
  const auto& outputs = node.outputs();
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const auto& output) { return node.graph().is_used(output.get()); });
}

std::vector<Value*> visible_values(const std::vector<Node*>& members) {
  const NodeSet set(members.begin(), members.end());
  std::vector<Value*> result;
  for (const Node* node : in_graph_order(members)) {
    for (const auto& output : node->outputs()) {
      if (is_read_outside(output.get(), set)) result.push_back(output.get());
    }
  }
  return result;
}

Node* sole_reader(const Value* value) {
  if (value->uses().size() != 1 || value->is_output_or_update()) return nullptr;
  return value->uses().front().node;
}

bool is_pointwise(const Node& convolution) {
  const Attributes& attributes = convolution.attributes();
  const Shape weight = convolution.input(1)->type().static_shape();
  const auto all = [](const std::vector<int64_t>& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
  };
  return all({weight.begin() + 1, weight.end() - 1}, 1) && all(attributes.integers("strides"), 1) &&
         all(attributes.integers("padding_low"), 0) && all(attributes.integers("padding_high"), 0) &&
         attributes.integer("groups") == 1;
}

Node* sole_reader(const Value* value, std::string_view operator_name) {
  Node* reader = sole_reader(value);
  return reader != nullptr && reader->operator_name() == operator_name ? reader : nullptr;
}

std::vector<Node*> readers_of(const Value* value) {
  std::vector<Node*> readers;
  for (const Use& use : value->uses()) readers.push_back(use.node);
  return in_graph_order(std::move(readers));
}

std::vector<Node*> nodes_of(const Graph& graph, std::string_view operator_name) {
  std::vector<Node*> result;
  for (const auto& node : graph.nodes()) {
    if (node->operator_name() == operator_name) result.push_back(node.get());
  }
  return result;
}

Node* producer_of(const Value* value, std::string_view operator_name) {
  Node* node = value->producer();
  return node != nullptr && node->operator_name() == operator_name ? node : nullptr;
}

bool is_per_channel(const Value& value, const SymbolicShape& shape) {
  return !value.shape().empty() && value.shape().back() == shape.back() &&
         element_count(value.shape()) == shape.back();
}

std::optional<double> scalar_constant(const Value* value) {
  while (value->producer() != nullptr && (value->producer()->operator_name() == "broadcast_to" ||
                                          value->producer()->operator_name() == "cast"))
    value = value->producer()->input(0);
  const Node* node = producer_of(value, "constant");
  if (node == nullptr) return std::nullopt;
  const Tensor& tensor = node->attributes().tensor("value");
  return tensor.size() == 1 ? std::optional(tensor.at(0)) : std::nullopt;
}

}  // namespace tessera
