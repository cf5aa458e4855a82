#include "onnx/model.h"

namespace tessera::onnx {

::onnx::ModelProto model(int64_t version) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(version);
  model.mutable_graph()->set_name("main");
  return model;
}

::onnx::NodeProto* add_node(::onnx::GraphProto& graph, const std::string& type,
                            const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  ::onnx::NodeProto* node = graph.add_node();
  node->set_op_type(type);
  node->set_name("the_" + type);
  for (const std::string& name : inputs) node->add_input(name);
  for (const std::string& name : outputs) node->add_output(name);
  return node;
}

void add_input(::onnx::GraphProto& graph, const std::string& name, const std::vector<int64_t>& shape) {
  ::onnx::ValueInfoProto* input = graph.add_input();
  input->set_name(name);
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(::onnx::TensorProto::FLOAT);
  type->mutable_shape();
  for (const int64_t extent : shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
}

void add_output(::onnx::GraphProto& graph, const std::string& name) {
  graph.add_output()->set_name(name);
}

::onnx::TensorProto* add_constant(::onnx::GraphProto& graph, const std::string& name,
                                  const std::vector<int64_t>& shape, const std::vector<float>& values) {
  ::onnx::TensorProto* tensor = graph.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(::onnx::TensorProto::FLOAT);
  for (const int64_t extent : shape) tensor->add_dims(extent);
  for (const float value : values) tensor->add_float_data(value);
  return tensor;
}

void set_attribute(::onnx::NodeProto* node, const std::string& name, int64_t value) {
  ::onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(::onnx::AttributeProto::INT);
  attribute->set_i(value);
}

std::shared_ptr<const program::Module> parse(const ::onnx::ModelProto& model,
                                             const std::filesystem::path& folder) {
  const std::string bytes = model.SerializeAsString();
  return parse(std::as_bytes(std::span(bytes)), "model", folder);
}

}  // namespace tessera::onnx
