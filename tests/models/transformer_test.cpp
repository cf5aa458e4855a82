// The Transformer beside torch's layers (tests/golden/transformer.py).
#include "tessera/models/transformer.h"

#include <gtest/gtest.h>

#include "tessera/compile/feeds.h"
#include "tessera/nn/layers.h"
#include "tessera/nn/task.h"
#include "tessera/ops/functions.h"

#include "models/golden_network.h"
#include "models/small_transformers.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace tessera::testing {
namespace {

using models::TransformerConfig;

constexpr int64_t kRows = 3;
constexpr int64_t kSource = 7;
constexpr int64_t kTarget = 6;
const int64_t kVocabulary = small_transformers().front().config.vocabulary;

// Outputs "logits", "loss" and "gradient.NAME".
struct Pass {
  Graph graph;
  std::vector<nn::Variable> variables;
};
std::unique_ptr<Pass> golden_pass(const TransformerConfig& config) {
  auto pass = std::make_unique<Pass>();
  Graph& graph = pass->graph;
  nn::Context context(graph, nn::Mode::training);
  const auto input = [&](const char* name, SymbolicShape shape) {
    return graph.add_input(InputRole::input, name, {DataType::int32, std::move(shape)});
  };
  Value* source = input("source", {kRows, kSource});
  Value* lengths = input("lengths", {kRows});
  Value* target = input("target", {kRows, kTarget});
  Value* target_lengths = input("target_lengths", {kRows});
  constexpr int64_t kPlaces = kTarget - 1;
  Value* given = ops::slice(target, {0, 0}, {ops::kWholeAxis, kPlaces});
  Value* right = ops::slice(target, {0, 1}, {ops::kWholeAxis, ops::kWholeAxis});
  Value* encoded = models::transformer_encoder(context, config, source, lengths);
  Value* logits = models::transformer_logits(
      context, config, models::transformer_decoder(context, config, given, encoded, lengths));
  Value* losses = ops::cross_entropy(ops::reshape(logits, {kRows * kPlaces, kVocabulary}),
                                     ops::reshape(right, {kRows * kPlaces}));
  // A row's first place is given, not said.
  Value* counts =
      nn::within_lengths(ops::subtract(target_lengths, ops::constant_like(target_lengths, 1)), kPlaces);
  const nn::Measure mean =
      nn::mean_of("loss", ops::reshape(losses, {kRows, kPlaces}), ops::cast(counts, DataType::fp32));
  Value* loss = ops::divide(mean.sum, mean.weight);
  graph.add_output("logits", logits);
  graph.add_output("loss", ops::reshape(loss, {1}));
  add_gradient_outputs(graph, context, loss);
  pass->variables = context.variables();
  return pass;
}

Feeds golden_feeds() {
  const auto tokens = [](const char* name, int64_t count) {
    return models::formula::labels(name, kRows * count, kVocabulary).reshape({kRows, count});
  };
  return {{"source", tokens("transformer.source", kSource)},
          {"lengths", Tensor::from<int32_t>({kRows}, {7, 4, 2})},
          {"target", tokens("transformer.target", kTarget)},
          {"target_lengths", Tensor::from<int32_t>({kRows}, {6, 5, 3})}};
}

TEST(Transformer, GivesTorchsLogitsLossAndGradientsOnEachDevice) {
  const data::SafetensorsFile golden = open_golden("transformer");
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  for (const auto& [name, config] : small_transformers()) {
    for (const auto& device : devices) {
      SCOPED_TRACE(name + " on " + device->description().name);
      const std::string prefix = name + "/";
      const std::unique_ptr<Pass> pass = golden_pass(config);
      CompileOptions options;
      options.pipeline.verify = true;
      const auto executable = compile(pass->graph, device, options);
      executable->bind(formula_variables(device, pass->variables));
      const Feeds outputs = executable->run(golden_feeds());
      // 1e-5 are a hundred and sixty roundings to fp32, of sums of a few layers of numbers of about one.
      for (const char* output : {"logits", "loss"})
        expect_close(outputs.at(output), golden.read(prefix + output).to_doubles(),
                     {.absolute = 1e-5, .relative = 1e-5}, output);
      size_t compared = 0;
      for (const nn::Variable& variable : pass->variables) {
        const std::string key = "gradient." + variable.name;
        // Keys' biases change all scores of a query alike, so that their gradient is nothing but rounding.
        if (variable.name.ends_with("k_proj.bias")) continue;
        ++compared;
        EXPECT_TRUE(digest_is_close(outputs.at(key).to_doubles(), golden.read(prefix + key).to_doubles()))
            << key;
      }
      EXPECT_EQ(compared, pass->variables.size() - 4);
    }
  }
}

TEST(Transformer, HasTheSizesOfItsPaper) {
  const auto count = [](const TransformerConfig& config) {
    return models::parameter_count(models::transformer_variables(config));
  };
  // torch.nn.Transformer's of these sizes, without the norms of both ends, and the table.
  EXPECT_EQ(count(models::transformer_base(37000)), 44138496 + 37000 * 512);
  EXPECT_EQ(count(models::transformer_big(37000)), 176357376 + 37000 * 1024);
  TransformerConfig pre_norm = models::transformer_base(37000);
  pre_norm.pre_norm = true;
  EXPECT_EQ(count(pre_norm), 44140544 + 37000 * 512);
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  EXPECT_ERROR(models::transformer_variables({.width = 16, .heads = 3}), ErrorCode::invalid_argument,
               "width of 16", "3 heads");
  EXPECT_ERROR(models::transformer_variables({.width = 2, .heads = 1}), ErrorCode::invalid_argument,
               "positions of 2 numbers");
  TransformerConfig config = small_transformers().front().config;
  config.positions = 6;
  EXPECT_ERROR(golden_pass(config), ErrorCode::invalid_argument, "7 tokens", "6 positions");
}

}  // namespace
}  // namespace tessera::testing
