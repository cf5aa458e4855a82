// Names, shapes and counts of the networks' variables beside torchvision's.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tessera/models/registry.h"

#include "support/expect_error.h"
#include "support/golden.h"

namespace tessera::testing {
namespace {

const nlohmann::json& golden_parameters() {
  static const nlohmann::json json = [] {
    std::ifstream file(golden_folder() / "torchvision_parameters.json");
    return nlohmann::json::parse(file);
  }();
  return json;
}

std::string own_name(const std::string& torchvision) {
  return torchvision == "resnext50_32x4d" ? "resnext50" : torchvision;
}

using NamedShapes = std::map<std::string, Shape>;

NamedShapes shapes_of(const std::vector<nn::Variable>& variables, InputRole role) {
  NamedShapes shapes;
  for (const nn::Variable& variable : variables) {
    if (variable.role != role) continue;
    shapes[variable.name] = variable.file_shape.empty() ? variable.shape : variable.file_shape;
  }
  return shapes;
}

NamedShapes shapes_of(const nlohmann::json& list) {
  NamedShapes shapes;
  for (const auto& entry : list) {
    const std::string name = entry[0];
    if (!name.ends_with("num_batches_tracked")) shapes[name] = entry[1].get<Shape>();
  }
  return shapes;
}

class Parameters : public ::testing::TestWithParam<std::string> {};

TEST_P(Parameters, AreTorchvisions) {
  const nlohmann::json& golden = golden_parameters().at(GetParam());
  const models::Network network = models::build(models::create(own_name(GetParam())), 1);
  EXPECT_EQ(shapes_of(network.variables, InputRole::parameter), shapes_of(golden.at("parameters")));
  EXPECT_EQ(shapes_of(network.variables, InputRole::state), shapes_of(golden.at("buffers")));
  EXPECT_EQ(models::parameter_count(network.variables), golden.at("total").get<int64_t>());
}

INSTANTIATE_TEST_SUITE_P(Models, Parameters, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& entry : golden_parameters().items()) names.push_back(entry.key());
                           return names;
                         }()),
                         [](const auto& test) { return test.param; });

TEST(Models, BuildInBothModesAtAnySymbolicBatch) {
  for (const std::string& name : models::networks().names()) {
    const models::Model model = models::create(name);
    for (const nn::Mode mode : {nn::Mode::inference, nn::Mode::training}) {
      const models::Network network = models::build(model, 2, mode);
      verify(*network.graph);
      const SymbolicShape logits{2, model.options.classes};
      EXPECT_EQ(network.graph->outputs().at(0).value->shape(), logits) << name;
    }
    const models::Network network = models::build(model, Dimension::symbol("batch"));
    EXPECT_EQ(network.graph->outputs().at(0).value->shape().front(), Dimension::symbol("batch")) << name;
  }
}

TEST(Models, OptionsOfTheirOwnHaveDefaults) {
  const models::ClassifierOptions digits = models::describe("mlp").defaults;
  Options own;
  EXPECT_EQ(models::parameter_count(models::build(models::create("mlp", digits, own), 1).variables),
            784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  own.set("hidden", std::vector<int64_t>{20});
  EXPECT_EQ(models::parameter_count(models::build(models::create("mlp", digits, own), 1).variables),
            784 * 20 + 20 + 20 * 10 + 10);
}

TEST(Models, UnknownNamesGetTheNearest) {
  EXPECT_ERROR(models::create("resnet51"), ErrorCode::invalid_argument, "resnet51", "resnet50");
  EXPECT_ERROR(models::resnet(20, {}), ErrorCode::invalid_argument, "20", "152");
  EXPECT_ERROR(models::vgg(12, false, {}), ErrorCode::invalid_argument, "12", "19");
}

}  // namespace
}  // namespace tessera::testing
