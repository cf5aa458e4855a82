// The check values of tests/golden/README.md.
#include "tessera/models/formula.h"

#include <gtest/gtest.h>

#include "tessera/models/model.h"

#include "support/expect_error.h"

namespace tessera::testing {
namespace {

namespace formula = models::formula;

TEST(Formula, GivesTheDocumentedNumbers) {
  EXPECT_EQ(formula::uniform("conv1.weight", 0), 0.0901498794555664F);
  EXPECT_EQ(formula::uniform("conv1.weight", 1), -0.8503705263137817F);
  EXPECT_EQ(formula::uniform("conv1.weight", 2), 0.9200377464294434F);
  EXPECT_EQ(formula::uniform("input", 999), 0.1827152967453003F);
  std::vector<int64_t> labels;
  for (uint64_t i = 0; i < 8; ++i) labels.push_back(formula::label("labels", i, 10));
  EXPECT_EQ(labels, (std::vector<int64_t>{5, 6, 9, 6, 2, 4, 6, 1}));
}

TEST(Formula, FillsNetworksInTheLayoutOfFiles) {
  const models::Network network = models::build(models::resnet18(), 1);
  const std::map<std::string, Tensor> weights = formula::weights(network.variables);
  const auto stored = [&](const std::string& name) {
    for (const nn::Variable& variable : network.variables) {
      if (variable.name == name) return nn::to_file_layout(variable, weights.at(name));
    }
    return Tensor();
  };
  const auto starts_with = [&](const std::string& name, std::vector<float> expected) {
    const Tensor tensor = stored(name);
    const auto values = tensor.data<float>();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(values[i], expected[i]) << name << " " << i;
  };
  starts_with("conv1.weight", {0.018213026225566864F, -0.17180079221725464F, 0.18587569892406464F});
  starts_with("bn1.running_var", {1.1423075199127197F, 0.9848067164421082F, 0.5890496969223022F});
  starts_with("layer1.0.bn2.weight", {0.12725654244422913F, 0.12635108828544617F, 0.1356908529996872F});
}

TEST(Formula, CountsImagesInTorchsOrder) {
  const Tensor images = formula::images("input", {2, 3, 4, 5});  // [N, H, W, C]
  // Element [1, 2, 3, 4] here is element [1, 4, 2, 3] of [2, 5, 3, 4] there.
  EXPECT_EQ(images.at(((1 * 3 + 2) * 4 + 3) * 5 + 4),
            formula::uniform("input", static_cast<uint64_t>(((1 * 5 + 4) * 3 + 2) * 4 + 3)));
  EXPECT_ERROR(formula::images("input", {2, 3}), ErrorCode::invalid_argument, "[2, 3]");
}

}  // namespace
}  // namespace tessera::testing
