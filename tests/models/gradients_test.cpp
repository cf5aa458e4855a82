// Losses, gradients and running statistics of one training pass, beside PyTorch's.
#include <gtest/gtest.h>

#include "tessera/nn/loss.h"
#include "tessera/passes/differentiate.h"

#include "models/golden_network.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/golden.h"

namespace tessera::testing {
namespace {

constexpr int64_t kBatch = 4;
constexpr int64_t kClasses = 10;

// Outputs "logits", "loss", "loss_smoothed" and "gradient.NAME"; running statistics are updated.
models::Network training_pass(const models::Model& model) {
  models::Network network;
  network.graph = std::make_unique<Graph>("training_pass");
  Graph& graph = *network.graph;
  nn::Context context(graph, nn::Mode::training);
  Value* images = graph.add_input(InputRole::input, "images", model.input_type(kBatch));
  Value* labels = graph.add_input(InputRole::input, "labels", {DataType::int32, {kBatch}});
  Value* logits = model.forward(context, images);
  Value* loss = nn::cross_entropy().build(logits, labels);
  graph.add_output("logits", logits);
  graph.add_output("loss", loss);
  graph.add_output("loss_smoothed", nn::cross_entropy({.smoothing = 0.1}).build(logits, labels));
  std::vector<Value*> parameters;
  for (const nn::Variable& variable : context.variables()) {
    if (variable.role == InputRole::parameter) parameters.push_back(graph.find_input(variable.name));
  }
  const std::vector<Value*> gradients = differentiate(graph, loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    graph.add_output("gradient." + parameters[i]->name(), gradients[i]);
  }
  network.variables = context.variables();
  return network;
}

struct PassResult {
  std::vector<nn::Variable> variables;
  std::map<std::string, Tensor> outputs;
  std::shared_ptr<Variables> state;

  // In the layout of files.
  std::vector<double> gradient(const nn::Variable& variable) const {
    return nn::to_file_layout(variable, outputs.at("gradient." + variable.name)).to_doubles();
  }
};

PassResult run_pass(const std::string& name, const data::SafetensorsFile& golden,
                    const std::shared_ptr<Device>& device) {
  const int64_t size = name == "lenet" ? 28 : 64;
  const models::Model model = golden_model(name, kClasses, size);
  models::Network network = training_pass(model);
  CompileOptions options;
  options.pipeline.verify = true;
  const auto executable = compile(*network.graph, device, options);
  PassResult result{network.variables, {}, formula_variables(device, network.variables)};
  executable->bind(result.state);
  result.outputs =
      executable->run({{"images", models::formula::images(golden.metadata().at("input"),
                                                          {kBatch, size, size, model.options.channels})},
                       {"labels", models::formula::labels("labels", kBatch, kClasses)}});
  return result;
}

// `t`: 1e-5 are a hundred and sixty roundings to fp32, what the sums of a few layers make of numbers of about
// one; after the batch normalizations of tens of layers ten times that (tests/golden/README.md).
void expect_values(const PassResult& result, const data::SafetensorsFile& golden, double t) {
  for (const char* name : {"logits", "loss", "loss_smoothed"}) {
    expect_close(result.outputs.at(name), golden.read(name).to_doubles(), {.absolute = t, .relative = t},
                 name);
  }
}

TEST(Gradients, OfLenetArePyTorchsOnEachDevice) {
  const data::SafetensorsFile golden = open_golden("lenet");
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  for (const auto& device : devices) {
    const PassResult result = run_pass("lenet", golden, device);
    expect_values(result, golden, 1e-5);
    for (const nn::Variable& variable : result.variables) {
      const std::vector<double> expected = golden.read("gradient." + variable.name).to_doubles();
      const double root = std::sqrt(static_cast<double>(expected.size()));
      // Ten times the digits of the loss's 1e-5 above, for elements of up to four times the root mean square.
      const Tolerance tolerance{.absolute = 4e-5 * digest(expected)[1] / root, .relative = 1e-5};
      const Tensor stored = nn::to_file_layout(variable, result.outputs.at("gradient." + variable.name));
      expect_close(stored, expected, tolerance, device->description().name + " " + variable.name);
    }
  }
}

// On processors without AVX-512 rounding moves a value of ResNet-50's across the kink of a ReLU in the last
// block of layer3, which changes the gradients before it by some thousandths (tests/golden/README.md); those
// after it stay, and so do all on other processors and devices.
double gradient_bound(const std::string& network, const Device& device, const std::string& variable) {
  const bool rounds_otherwise = device.description().name == "cpu" && !__builtin_cpu_supports("avx512f");
  const bool after_kink = variable.starts_with("layer4") || variable.starts_with("fc");
  return network == "resnet50" && rounds_otherwise && !after_kink ? 5e-3 : 1e-4;
}

class ResNetGradients : public ::testing::TestWithParam<std::string> {};

TEST_P(ResNetGradients, ArePyTorchs) {
  const data::SafetensorsFile golden = open_golden(GetParam());
  for (const auto& device : available_devices()) {
    const PassResult result = run_pass(GetParam(), golden, device);
    expect_values(result, golden, 1e-4);
    for (const nn::Variable& variable : result.variables) {
      const bool trained = variable.role == InputRole::parameter;
      const std::string key = (trained ? "gradient." : "buffer.") + variable.name;
      const std::vector<double> values =
          trained ? result.gradient(variable) : result.state->get(variable.name).to_doubles();
      const double bound = trained ? gradient_bound(GetParam(), *device, variable.name) : 1e-4;
      EXPECT_TRUE(digest_is_close(values, golden.read(key).to_doubles(), bound))
          << device->description().name << " " << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ResNetGradients, ::testing::Values("resnet18", "resnet50"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera::testing
