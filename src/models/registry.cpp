#include "tessera/models/registry.h"

namespace tessera::models {

TensorType Model::input_type(const Dimension& batch) const {
  return {DataType::fp32, {batch, options.image_size, options.image_size, options.channels}};
}

Registry<NetworkDescription>& networks() {
  static Registry<NetworkDescription> networks("network");
  return networks;
}

const NetworkDescription& describe(const std::string& name) {
  return networks().get(name);
}

Model create(const std::string& name, const ClassifierOptions& options, const Options& own) {
  const NetworkDescription& network = describe(name);
  Options complete = own;
  for (const Option& option : network.options) {
    if (!complete.has(option.key)) complete.set(option.key, option.value);
  }
  return network.create(options, complete);
}

Network build(const Model& model, const Dimension& batch, nn::Mode mode) {
  Network network;
  network.graph = std::make_unique<Graph>(model.name);
  nn::Context context(*network.graph, mode);
  Value* images = network.graph->add_input(InputRole::input, "images", model.input_type(batch));
  network.graph->add_output("logits", model.forward(context, images));
  network.variables = context.variables();
  return network;
}

int64_t parameter_count(const std::vector<nn::Variable>& variables) {
  int64_t count = 0;
  for (const nn::Variable& variable : variables) {
    if (variable.role == InputRole::parameter) count += element_count(variable.shape);
  }
  return count;
}

}  // namespace tessera::models
