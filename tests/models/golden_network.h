// Networks filled by the formula of tests/golden/README.md, ready to run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/executable.h"
#include "tessera/models/formula.h"
#include "tessera/models/registry.h"
#include "tessera/nn/context.h"
#include "tessera/passes/differentiate.h"

namespace tessera::testing {

inline models::Model golden_model(const std::string& name, int64_t classes, int64_t image_size) {
  models::ClassifierOptions options = models::describe(name).defaults;
  options.classes = classes;
  options.image_size = image_size;
  return models::create(name, options);
}

inline std::shared_ptr<Variables> formula_variables(const std::shared_ptr<Device>& device,
                                                    const std::vector<nn::Variable>& list) {
  auto variables = std::make_shared<Variables>(device);
  for (const auto& [name, value] : models::formula::weights(list)) variables->set(name, value);
  return variables;
}

// "gradient.NAME" of the loss, of each variable.
inline void add_gradient_outputs(Graph& graph, const nn::Context& context, Value* loss) {
  std::vector<Value*> parameters;
  for (const nn::Variable& variable : context.variables())
    parameters.push_back(graph.find_input(variable.name));
  const std::vector<Value*> gradients = differentiate(graph, loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i)
    graph.add_output("gradient." + parameters[i]->name(), gradients[i]);
}

}  // namespace tessera::testing
