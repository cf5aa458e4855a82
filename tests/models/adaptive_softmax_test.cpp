// Beside torch.nn.AdaptiveLogSoftmaxWithLoss (tests/golden/transformer_xl.py).
#include "tessera/nn/adaptive_softmax.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/feeds.h"
#include "tessera/models/formula.h"
#include "tessera/passes/differentiate.h"
#include "tessera/train/checkpoint.h"

#include "support/compare.h"
#include "support/devices.h"
#include "support/golden.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

namespace formula = models::formula;

constexpr int64_t kRows = 12, kWidth = 16, kTokens = 29;
const nn::AdaptiveVocabulary kVocabulary{.tokens = kTokens, .cutoffs = {8, 17}, .narrowing = 2};

Tensor golden_input() {
  Tensor x(DataType::fp32, {kRows, kWidth});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, formula::uniform("adaptive.x", static_cast<uint64_t>(i)));
  return x;
}

std::vector<std::shared_ptr<Device>> devices_and_reference() {
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  return devices;
}

// 1e-5 are a hundred and sixty roundings of numbers of about one.
constexpr Tolerance kClose{.absolute = 1e-5, .relative = 1e-5};

TEST(AdaptiveSoftmax, GivesTorchsLossesProbabilitiesAndGradientsOnEachDevice) {
  Graph graph;
  nn::Context context(graph, nn::Mode::training);
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {kRows, kWidth}});
  Value* labels = graph.add_input(InputRole::input, "labels", {DataType::int32, {kRows}});
  const nn::AdaptiveWeights weights = nn::adaptive_weights(context, kVocabulary, kWidth, true);
  Value* losses = nn::adaptive_losses(kVocabulary, weights, x, labels);
  graph.add_output("losses", losses);
  graph.add_output("log_probabilities", nn::adaptive_log_probabilities(kVocabulary, weights, x));
  std::vector<Value*> sources{x};
  for (const nn::Variable& variable : context.variables()) sources.push_back(graph.find_input(variable.name));
  const std::vector<Value*> gradients = differentiate(graph, ops::reduce_mean(losses), sources);
  for (size_t i = 0; i < sources.size(); ++i)
    graph.add_output("gradient." + sources[i]->name(), gradients[i]);
  const data::SafetensorsFile golden = open_golden("transformer_xl");
  for (const auto& device : devices_and_reference()) {
    SCOPED_TRACE(device->description().name);
    const auto executable = compile(graph, device);
    const auto variables = std::make_shared<Variables>(device);
    for (const auto& [name, value] : formula::weights(context.variables())) variables->set(name, value);
    executable->bind(variables);
    const Feeds outputs = executable->run(
        {{"x", golden_input()}, {"labels", formula::labels("adaptive.labels", kRows, kTokens)}});
    for (const char* output : {"losses", "log_probabilities"})
      expect_close(outputs.at(output), golden.read(std::string("softmax/") + output).to_doubles(), kClose,
                   output);
    for (const Value* source : sources) {
      const std::string key = "gradient." + source->name();
      EXPECT_TRUE(digest_is_close(outputs.at(key).to_doubles(), golden.read("softmax/" + key).to_doubles()))
          << key;
    }
  }
}

// Tables that are tied: what is read is the row of the token's own cluster, widened.
TEST(AdaptiveSoftmax, ReadsEachTokenFromItsCluster) {
  Graph graph;
  nn::Context context(graph, nn::Mode::inference);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {kTokens}});
  const nn::AdaptiveTables tables(context, "words", kVocabulary, kWidth, 1);
  graph.add_output("y", tables.embedded(tokens));
  const auto variables = std::make_shared<Variables>(Device::cpu());
  train::initialize_variables(*variables, context.variables(), 3);
  const auto executable = compile(graph, Device::cpu());
  executable->bind(variables);
  const Tensor y = executable
                       ->run({{"tokens", Tensor::from<int32_t>({kTokens},
                                                               [] {
                                                                 std::vector<int32_t> all(kTokens);
                                                                 for (size_t i = 0; i < all.size(); ++i)
                                                                   all[i] = static_cast<int32_t>(i);
                                                                 return all;
                                                               }())}})
                       .at("y");
  const std::vector<int64_t> first{0, 8, 17}, end{8, 17, kTokens}, widths{16, 8, 4};
  for (size_t part = 0; part < first.size(); ++part) {
    const std::string number = std::to_string(part);
    const Tensor table = variables->get("words.emb_layers." + number + ".weight");
    ASSERT_EQ(table.shape(), (Shape{end[part] - first[part], widths[part]}));
    for (int64_t token = first[part]; token < end[part]; ++token) {
      for (int64_t w = 0; w < kWidth; ++w) {
        double expected = 0;
        if (part == 0) {
          expected = table.at(token * kWidth + w);
        } else {
          const Tensor projection = variables->get("words.emb_projs." + number);
          for (int64_t i = 0; i < widths[part]; ++i)
            expected += table.at((token - first[part]) * widths[part] + i) * projection.at(i * kWidth + w);
        }
        EXPECT_NEAR(y.at(token * kWidth + w), expected, 1e-5) << token << " " << w;
      }
    }
  }
}

// The probabilities of all tokens add up to one, losses are their negative logarithms, and ignored labels
// count nothing.
TEST(AdaptiveSoftmax, LosesTheLogarithmsOfItsProbabilities) {
  Graph graph;
  nn::Context context(graph, nn::Mode::inference);
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {kRows, kWidth}});
  Value* labels = graph.add_input(InputRole::input, "labels", {DataType::int32, {kRows}});
  const nn::AdaptiveWeights weights =
      nn::AdaptiveTables(context, "words", kVocabulary, kWidth, 0.5).weights(context, "crit");
  graph.add_output("losses", nn::adaptive_losses(kVocabulary, weights, x, labels));
  graph.add_output("logarithms", nn::adaptive_log_probabilities(kVocabulary, weights, x));
  const auto variables = std::make_shared<Variables>(Device::cpu());
  train::initialize_variables(*variables, context.variables(), 5);
  const auto executable = compile(graph, Device::cpu());
  executable->bind(variables);
  Tensor came = formula::labels("adaptive.labels", kRows, kTokens);
  came.set(3, -100);
  const Feeds outputs = executable->run({{"x", golden_input()}, {"labels", came}});
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int64_t token = 0; token < kTokens; ++token)
      sum += std::exp(outputs.at("logarithms").at(row * kTokens + token));
    EXPECT_NEAR(sum, 1, 1e-5);
    const auto label = static_cast<int64_t>(came.at(row));
    const double expected = label < 0 ? 0 : -outputs.at("logarithms").at(row * kTokens + label);
    EXPECT_NEAR(outputs.at("losses").at(row), expected, 1e-5);
  }
}

}  // namespace
}  // namespace tessera::testing
