// What networks filled by the formula answer, beside torchvision's networks filled alike.
#include <gtest/gtest.h>

#include "models/golden_network.h"
#include "support/compare.h"
#include "support/golden.h"

namespace tessera::testing {
namespace {

class Logits : public ::testing::TestWithParam<std::string> {};

TEST_P(Logits, AreTorchvisions) {
  const std::string name = GetParam() == "resnext50_32x4d" ? "resnext50" : GetParam();
  const int64_t size = name.starts_with("res") ? 64 : 224;
  const models::Network network = models::build(golden_model(name, 10, size), 2);
  CompileOptions options;
  options.passes.frozen = true;
  const auto executable = compile(*network.graph, Device::cpu(), options);
  executable->bind(formula_variables(Device::cpu(), network.variables));
  const auto outputs = executable->run({{"images", models::formula::images("input", {2, size, size, 3})}});

  const std::vector<double> golden = open_golden("torchvision_logits").read(GetParam()).to_doubles();
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    difference += std::pow(outputs.at("logits").at(static_cast<int64_t>(i)) - golden[i], 2);
    norm += golden[i] * golden[i];
  }
  // torch's own float32 is off by 2e-6 of the golden doubles; other orders of summation by a few times that.
  EXPECT_LT(std::sqrt(difference / norm), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, Logits,
                         ::testing::Values("alexnet", "vgg11", "vgg16", "vgg16_bn", "resnet18", "resnet34",
                                           "resnet50", "resnet101", "resnet152", "resnext50_32x4d"),
                         [](const auto& test) { return test.param; });

TEST(Logits, OfUnfusedAndUnfrozenGraphsAreTheSame) {
  const models::Network network = models::build(golden_model("resnet18", 10, 64), 2);
  const Tensor images = models::formula::images("input", {2, 64, 64, 3});
  std::vector<Tensor> logits;
  for (const bool optimized : {true, false}) {
    CompileOptions options;
    options.passes.frozen = optimized;
    options.pipeline.verify = true;
    if (!optimized) {
      for (const Pass& pass : pipeline(options.passes)) options.pipeline.disabled.insert(pass.name);
    }
    const auto executable = compile(*network.graph, Device::cpu(), options);
    executable->bind(formula_variables(Device::cpu(), network.variables));
    logits.push_back(executable->run({{"images", images}}).at("logits"));
  }
  // Two orders of summation, each as far from the exact logits (of about one) as the bound above.
  expect_close(logits[0], logits[1], {.absolute = 4e-5, .relative = 4e-5});
}

}  // namespace
}  // namespace tessera::testing
