// The reference interpreter: runs each node's plain loop, one after the other, with every value kept.
#include "tessera/base/error.h"
#include "tessera/graph/operator.h"

namespace tessera {
namespace {

// Applies the scalar function of a primitive elementwise operator to broadcast inputs, in double.
void run_scalar(const ReferenceCall& call) {
  Tensor& output = *call.outputs[0];
  const Shape& shape = output.shape();
  const size_t inputs = call.inputs.size();
  std::vector<std::vector<int64_t>> strides(inputs, std::vector<int64_t>(shape.size(), 0));
  for (size_t i = 0; i < inputs; ++i) {
    const Shape& own = call.inputs[i]->shape();
    const std::vector<int64_t> own_strides = row_major_strides(own);
    const size_t offset = shape.size() - own.size();
    for (size_t axis = 0; axis < own.size(); ++axis)
      strides[i][offset + axis] = own[axis] == 1 ? 0 : own_strides[axis];
  }
  const std::vector<int64_t> output_strides = row_major_strides(shape);
  std::vector<double> arguments(inputs);
  for (int64_t element = 0; element < output.size(); ++element) {
    for (size_t i = 0; i < inputs; ++i) {
      int64_t source = 0;
      int64_t rest = element;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        source += rest / output_strides[axis] * strides[i][axis];
        rest %= output_strides[axis];
      }
      arguments[i] = call.inputs[i]->at(source);
    }
    output.set(element, call.node.schema().scalar(arguments, call.attributes()));
  }
}

// Runs a composite operator through its decomposition. An elementwise one of 16 bits is computed in fp32
// and rounded once, as kernels do: 1 + tanh(x) for a GELU has no digits left in 16 bits where x is small.
void run_decomposition(const ReferenceCall& call) {
  const bool is_elementwise = call.node.schema().operator_class == OperatorClass::elementwise;
  Graph graph("decomposition");
  std::vector<Value*> inputs;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    TensorType type = call.node.input(i)->type();
    if (is_elementwise && is_half(type.data_type)) type.data_type = DataType::fp32;
    tensors.push_back(call.inputs[i]->cast(type.data_type));
    inputs.push_back(graph.add_input(InputRole::input, "input" + std::to_string(i), std::move(type)));
  }
  for (Value* value : call.node.schema().decompose(call.node, inputs)) graph.add_output(value->name(), value);
  const ReferenceResult result = run_reference(graph, tensors);
  for (size_t i = 0; i < call.outputs.size(); ++i)
    *call.outputs[i] = result.outputs[i].cast(call.node.output(i)->data_type());
}

void run_body(const ReferenceCall& call) {
  std::vector<Tensor> inputs;
  for (const Tensor* input : call.inputs) inputs.push_back(*input);
  const ReferenceResult result = run_reference(*call.node.body(), inputs);
  for (size_t i = 0; i < call.outputs.size(); ++i) *call.outputs[i] = result.outputs[i];
}

}  // namespace

std::vector<Tensor> run_reference(const Node& node, std::span<const Tensor* const> inputs) {
  std::vector<Tensor> outputs;
  for (const auto& output : node.outputs())
    outputs.emplace_back(output->data_type(), output->type().static_shape());
  std::vector<Tensor*> pointers;
  for (Tensor& output : outputs) pointers.push_back(&output);
  const ReferenceCall call{node, inputs, pointers};
  const OperatorSchema& schema = node.schema();
  if (node.body() != nullptr) {
    run_body(call);
  } else if (schema.reference) {
    schema.reference(call);
  } else if (schema.scalar) {
    run_scalar(call);
  } else if (schema.decompose) {
    run_decomposition(call);
  } else {
    fail(ErrorCode::internal, "operator '{}' has no reference loop", schema.name);
  }
  return outputs;
}

ReferenceResult run_reference(const Graph& graph, std::span<const Tensor> inputs) {
  require(inputs.size() == graph.inputs().size(), ErrorCode::invalid_argument,
          "graph '{}' takes {} inputs, got {}", graph.name(), graph.inputs().size(), inputs.size());
  std::unordered_map<const Value*, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& input = *graph.inputs()[i];
    require(inputs[i].data_type() == input.data_type() && inputs[i].shape() == input.type().static_shape(),
            ErrorCode::invalid_argument, "input '{}' must be {}, got {}{}", input.name(),
            to_string(input.type()), to_string(inputs[i].data_type()), to_string(inputs[i].shape()));
    values.emplace(&input, inputs[i]);
  }
  for (const auto& node : graph.nodes()) {
    std::vector<const Tensor*> arguments;
    for (const Value* input : node->inputs()) arguments.push_back(&values.at(input));
    std::vector<Tensor> outputs = run_reference(*node, arguments);
    for (size_t i = 0; i < outputs.size(); ++i) values.emplace(node->output(i), std::move(outputs[i]));
  }
  ReferenceResult result;
  for (const auto& output : graph.outputs()) result.outputs.push_back(values.at(output.value));
  for (const auto& update : graph.updates()) result.updates.push_back(values.at(update.next));
  return result;
}

}  // namespace tessera
