#include "onnx/graph_writer.h"

#include <algorithm>
#include <unordered_set>
#include <variant>

#include "tessera/base/error.h"
#include "tessera/onnx/save.h"

#include "onnx/types.h"

namespace tessera::onnx {
namespace {

// Whether an attribute holds extents that are open.
bool is_open(const Node& node) {
  return std::ranges::any_of(node.attributes().entries(), [](const auto& entry) {
    const auto* shape = std::get_if<SymbolicShape>(&entry.second.variant());
    return shape != nullptr && !is_static(*shape);
  });
}

constexpr int64_t kMostTypeCode = 20;  // of the operator set that is written: parts of bytes came later

int32_t written_code(DataType type) {
  const int64_t code = code_of(type);
  require(code <= kMostTypeCode, ErrorCode::unsupported,
          "operator set {} of the ONNX format has no elements of the type {}", kWrittenOperatorSet,
          to_string(type));
  return static_cast<int32_t>(code);
}

void set_type(::onnx::ValueInfoProto& info, const TensorType& type) {
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(written_code(type.data_type));
  tensor->mutable_shape();  // also of a scalar
  for (const Dimension& extent : type.shape) {
    auto* dimension = tensor->mutable_shape()->add_dim();
    if (extent.is_static()) {
      dimension->set_dim_value(extent.value());
    } else {
      dimension->set_dim_param(extent.to_string());
    }
  }
}

void set_attribute(::onnx::AttributeProto& proto, const std::string& name, const Attribute& attribute) {
  proto.set_name(name);
  const auto set_integer = [&](int64_t value) {
    proto.set_type(::onnx::AttributeProto::INT);
    proto.set_i(value);
  };
  if (const auto* integer = std::get_if<int64_t>(&attribute.variant())) {
    set_integer(*integer);
  } else if (const auto* boolean = std::get_if<bool>(&attribute.variant())) {
    set_integer(*boolean ? 1 : 0);
  } else if (const auto* type = std::get_if<DataType>(&attribute.variant())) {
    set_integer(written_code(*type));
  } else if (const auto* real = std::get_if<double>(&attribute.variant())) {
    proto.set_type(::onnx::AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&attribute.variant())) {
    proto.set_type(::onnx::AttributeProto::STRING);
    proto.set_s(*text);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&attribute.variant())) {
    proto.set_type(::onnx::AttributeProto::INTS);
    for (const int64_t value : *integers) proto.add_ints(value);
  } else {
    fail(ErrorCode::internal, "the attribute '{}' is of a kind that no writer gives", name);
  }
}

Tensor transposed(const Tensor& tensor, const std::vector<int64_t>& permutation) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {tensor.data_type(), to_symbolic(tensor.shape())});
  const Node* node = graph.add_node("transpose", {x}, {{"permutation", permutation}});
  const Tensor* operand = &tensor;
  return run_reference(*node, std::span(&operand, 1)).front();
}

// The nodes that the outputs depend on, in the graph's order.
std::vector<const Node*> needed_nodes(const Graph& graph) {
  std::unordered_set<const Node*> needed;
  for (const Graph::Output& output : graph.outputs()) needed.insert(output.value->producer());
  std::vector<const Node*> nodes;
  for (auto position = graph.nodes().rbegin(); position != graph.nodes().rend(); ++position) {
    const Node* node = position->get();
    if (!needed.contains(node)) continue;
    for (const Value* input : node->inputs()) needed.insert(input->producer());
    nodes.push_back(node);
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

Registry<NodeWriter>& node_writers() {
  static Registry<NodeWriter> registry("operator in the ONNX format for");
  return registry;
}

void GraphWriter::write() {
  require(graph_.updates().empty(), ErrorCode::unsupported,
          "the network updates '{}', and a model in the ONNX format keeps nothing between its runs",
          graph_.updates().empty() ? "" : graph_.updates().front().state->name());
  require(!graph_.outputs().empty(), ErrorCode::invalid_argument, "the graph '{}' has no outputs",
          graph_.name());
  proto_.set_name(graph_.name());
  declare_inputs();
  for (const Graph::Output& output : graph_.outputs()) {
    const bool is_new = taken_.insert(output.name).second;
    require(is_new, ErrorCode::unsupported, "'{}' is the name of two inputs or outputs", output.name);
    output_names_.emplace(output.value, output.name);
  }
  for (const Node* node : needed_nodes(graph_)) write_node(*node);
  write_outputs();
}

void GraphWriter::declare_inputs() {
  for (const auto& input : graph_.inputs()) {
    if (input->role() != InputRole::input) continue;
    taken_.insert(input->name());
    set_name(input.get(), AxisOrder::as_is, input->name());
    auto* info = proto_.add_input();
    info->set_name(input->name());
    set_type(*info, input->type());
  }
}

void GraphWriter::write_outputs() {
  for (const Graph::Output& output : graph_.outputs()) {
    const std::string written = name(output.value);
    if (written != output.name) add_node("Identity", {written}, {}, {output.name});
    auto* info = proto_.add_output();
    info->set_name(output.name);
    set_type(*info, output.value->type());
  }
}

void GraphWriter::write_node(const Node& node) {
  if (known(node.output()) != nullptr) return;
  const NodeWriter* writer = node_writers().find(node.operator_name());
  require(writer != nullptr, ErrorCode::unsupported,
          "node '{}': the operator '{}' cannot be written in the ONNX format", node.name(),
          node.operator_name());
  WriteCall call(*this, node);
  writer->write(call);
  for (const auto& output : node.outputs()) {
    const bool is_there_now =
        is_there(output.get(), AxisOrder::as_is) || is_there(output.get(), AxisOrder::channels_first);
    call.require(is_there_now || !graph_.is_used(output.get()),
                 "its result '" + output->name() + "' is read, which the ONNX format does not give");
  }
}

bool GraphWriter::is_there(const Value* value, AxisOrder order) const {
  return names_.contains({value, order});
}

std::string GraphWriter::name(const Value* value, AxisOrder order) {
  const int64_t rank = value->type().rank();
  if (rank < 3) order = AxisOrder::as_is;  // there is no space between batch and channels
  const auto found = names_.find({value, order});
  if (found != names_.end()) return found->second;
  const bool first = order == AxisOrder::channels_first;
  std::string name = name_to_be(value, order);
  if (const Tensor* tensor = known(value)) {
    name = add_initializer(name, first ? transposed(*tensor, channels_first_permutation(rank)) : *tensor);
  } else {
    const auto other = names_.find({value, first ? AxisOrder::as_is : AxisOrder::channels_first});
    require(other != names_.end(), ErrorCode::internal, "'{}' is read before it is written", value->name());
    const auto permutation = first ? channels_first_permutation(rank) : channels_last_permutation(rank);
    add_node("Transpose", {other->second}, {{"perm", permutation}}, {name});
  }
  set_name(value, order, name);
  return name;
}

std::string GraphWriter::transposed_name(const Value* value, const std::vector<int64_t>& permutation) {
  const std::string result = unique_name(value->name() + "/transposed");
  if (const Tensor* tensor = known(value)) return add_initializer(result, transposed(*tensor, permutation));
  return add_node("Transpose", {name(value)}, {{"perm", permutation}}, {result}).front();
}

void GraphWriter::set_name(const Value* value, AxisOrder order, const std::string& name) {
  if (value->type().rank() < 3) order = AxisOrder::as_is;
  names_[{value, order}] = name;
}

std::string GraphWriter::name_to_be(const Value* value, AxisOrder order) {
  const auto output = output_names_.find(value);
  const bool is_output =
      output != output_names_.end() && known(value) == nullptr && value->producer() != nullptr;
  if (is_output && (order == AxisOrder::as_is || value->type().rank() < 3)) return output->second;
  // A weight in another type is the weight.
  while (known(value) != nullptr && value->producer() != nullptr && value->producer()->inputs().size() == 1)
    value = value->producer()->input(0);
  return unique_name(value->name());
}

const Tensor* GraphWriter::fold(const Node& node, const Value* value) {
  if (node.schema().traits.random || !node.bodies().empty() || !value->type().is_static() || is_open(node))
    return nullptr;
  std::vector<const Tensor*> operands;
  size_t bytes = 0;
  for (const Value* input : node.inputs()) {
    operands.push_back(known(input));
    if (operands.back() == nullptr) return nullptr;
    bytes += operands.back()->bytes();
  }
  const bool grows = static_cast<size_t>(value->type().bytes()) > bytes;
  if (!operands.empty() && (grows || node.outputs().size() != 1)) return nullptr;
  return &known_.emplace(value, run_reference(node, operands).at(value->index())).first->second;
}

const Tensor* GraphWriter::known(const Value* value) {
  const auto found = known_.find(value);
  if (found != known_.end()) return &found->second;
  if (const Node* node = value->producer()) return fold(*node, value);
  if (value->role() == InputRole::input) return nullptr;
  const auto weight = weights_.find(value->name());
  require(weight != weights_.end() || value->initial() != nullptr, ErrorCode::invalid_argument,
          "nothing says what the variable '{}' holds", value->name());
  const Tensor& tensor = weight != weights_.end() ? weight->second : *value->initial();
  const TensorType type{tensor.data_type(), to_symbolic(tensor.shape())};
  require(type == value->type(), ErrorCode::invalid_argument, "the variable '{}' is {}, expected {}",
          value->name(), to_string(type), to_string(value->type()));
  return &known_.emplace(value, tensor).first->second;
}

std::string GraphWriter::unique_name(const std::string& wanted) {
  std::string name = wanted;
  for (int64_t number = 2; !taken_.insert(name).second; ++number)
    name = wanted + "_" + std::to_string(number);
  return name;
}

std::string GraphWriter::add_initializer(const std::string& name, const Tensor& tensor) {
  auto* proto = proto_.add_initializer();
  proto->set_name(name);
  proto->set_data_type(written_code(tensor.data_type()));
  for (const int64_t extent : tensor.shape()) proto->add_dims(extent);
  contents_.push_back({proto, tensor});
  return name;
}

std::string GraphWriter::add_input(const std::string& wanted_name, const TensorType& type,
                                   const std::string& meaning) {
  auto* info = proto_.add_input();
  info->set_name(unique_name(wanted_name));
  info->set_doc_string(meaning);
  set_type(*info, type);
  return info->name();
}

std::vector<std::string> GraphWriter::add_node(const std::string& type,
                                               const std::vector<std::string>& operands,
                                               const Attributes& attributes,
                                               const std::vector<std::string>& results) {
  auto* proto = proto_.add_node();
  proto->set_op_type(type);
  proto->set_name(results.front());
  for (const std::string& operand : operands) proto->add_input(operand);
  for (const std::string& result : results) proto->add_output(result);
  for (const auto& [name, attribute] : attributes.entries())
    set_attribute(*proto->add_attribute(), name, attribute);
  return results;
}

std::string GraphWriter::add_shape(const Node& node, const SymbolicShape& shape) {
  if (is_static(shape)) {
    return add_initializer(unique_name(node.name() + "/shape"),
                           Tensor::from<int64_t>({std::ssize(shape)}, to_static(shape)));
  }
  std::vector<std::string> extents;
  for (const Dimension& extent : shape) extents.push_back(add_extent(node, extent));
  std::string name = unique_name(node.name() + "/shape");
  add_node("Concat", extents, {{"axis", 0}}, {name});
  return name;
}

// int64[1]
std::string GraphWriter::add_extent(const Node& node, const Dimension& extent) {
  const std::string text = extent.to_string();
  const auto found = extents_.find(text);
  if (found != extents_.end()) return found->second;
  std::string name;
  if (extent.is_static()) {
    name = add_initializer(unique_name("extent_" + text), Tensor::from<int64_t>({1}, {extent.value()}));
  } else {
    name = unique_name("extent_of_" + text);
    const auto give = [&](const Value& input) {
      const auto axis = std::find(input.shape().begin(), input.shape().end(), extent);
      if (input.role() != InputRole::input || axis == input.shape().end()) return false;
      const int64_t place = axis - input.shape().begin();
      add_node("Shape", {input.name()}, {{"start", place}, {"end", place + 1}}, {name});
      return true;
    };
    const bool is_given = std::any_of(graph_.inputs().begin(), graph_.inputs().end(),
                                      [&](const auto& input) { return give(*input); });
    require(is_given, ErrorCode::unsupported, "node '{}' needs the extent {}, which is that of no input",
            node.name(), text);
  }
  return extents_[text] = name;
}

}  // namespace tessera::onnx
