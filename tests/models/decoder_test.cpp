// Decoders beside transformers' (tests/golden/decoder.py).
#include "tessera/models/decoder.h"

#include <gtest/gtest.h>

#include "tessera/compile/feeds.h"
#include "tessera/ops/functions.h"

#include "models/golden_network.h"
#include "models/small_decoders.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace tessera::testing {
namespace {

using models::DecoderConfig;
using models::DecoderForm;

constexpr int64_t kRows = 2;
constexpr int64_t kTokens = 12;
const int64_t kVocabulary = small_decoders().front().config.vocabulary;

// Outputs "logits", "loss" and "gradient.NAME".
struct Pass {
  Graph graph;
  std::vector<nn::Variable> variables;
};
std::unique_ptr<Pass> golden_pass(const DecoderConfig& config) {
  auto pass = std::make_unique<Pass>();
  Graph& graph = pass->graph;
  nn::Context context(graph, nn::Mode::training);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {kRows, kTokens}});
  Value* logits = models::decoder_logits(context, config, models::decoder(context, config, tokens));
  constexpr int64_t kForetold = kTokens - 1;
  Value* said = ops::slice(logits, {0, 0, 0}, {ops::kWholeAxis, kForetold, ops::kWholeAxis});
  Value* came = ops::slice(tokens, {0, 1}, {ops::kWholeAxis, ops::kWholeAxis});
  Value* losses = ops::cross_entropy(ops::reshape(said, {kRows * kForetold, kVocabulary}),
                                     ops::reshape(came, {kRows * kForetold}));
  Value* loss = ops::reduce_mean(losses, {});
  graph.add_output("logits", logits);
  graph.add_output("loss", ops::reshape(loss, {1}));
  add_gradient_outputs(graph, context, loss);
  pass->variables = context.variables();
  return pass;
}

TEST(Decoder, GivesTransformersLogitsLossAndGradientsOnEachDevice) {
  const data::SafetensorsFile golden = open_golden("decoder");
  const Feeds feeds{
      {"tokens",
       models::formula::labels("decoder.tokens", kRows * kTokens, kVocabulary).reshape({kRows, kTokens})}};
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  for (const auto& [name, config] : small_decoders()) {
    for (const auto& device : devices) {
      SCOPED_TRACE(name + " on " + device->description().name);
      const std::string prefix = name + "/";
      const std::unique_ptr<Pass> pass = golden_pass(config);
      CompileOptions options;
      options.pipeline.verify = true;
      const auto executable = compile(pass->graph, device, options);
      executable->bind(formula_variables(device, pass->variables));
      const Feeds outputs = executable->run(feeds);
      // 1e-5 are a hundred and sixty roundings to fp32, of sums of a few layers of numbers of about one.
      for (const char* output : {"logits", "loss"})
        expect_close(outputs.at(output), golden.read(prefix + output).to_doubles(),
                     {.absolute = 1e-5, .relative = 1e-5}, output);
      for (const nn::Variable& variable : pass->variables) {
        const std::string key = "gradient." + variable.name;
        const Tensor own = nn::to_file_layout(variable, outputs.at(key));
        EXPECT_TRUE(digest_is_close(own.to_doubles(), golden.read(prefix + key).to_doubles())) << key;
      }
    }
  }
}

TEST(Decoder, HasTheSizesOfItsPapers) {
  const auto count = [](const DecoderConfig& config) {
    return models::parameter_count(models::decoder_variables(config));
  };
  // What transformers counts of `gpt2`, of `gpt2-xl` and of TinyLlama 1.1B.
  EXPECT_EQ(count({}), 124439808);
  EXPECT_EQ(count({.width = 1600, .layers = 48, .heads = 25, .inner = 6400}), 1557611200);
  EXPECT_EQ(count({.form = DecoderForm::llama,
                   .vocabulary = 32000,
                   .width = 2048,
                   .layers = 22,
                   .heads = 32,
                   .inner = 5632,
                   .positions = 2048,
                   .tied = false,
                   .key_heads = 4}),
            1100048384);
}

TEST(Decoder, RefusesWhatDoesNotDivide) {
  const auto refused = [](const DecoderConfig& config) { return models::decoder_variables(config); };
  EXPECT_ERROR(refused({.width = 16, .heads = 3}), ErrorCode::invalid_argument, "width of 16", "3 heads");
  const DecoderConfig llama{.form = DecoderForm::llama, .width = 16, .layers = 1, .heads = 4, .inner = 8};
  DecoderConfig keys = llama;
  keys.key_heads = 3;
  EXPECT_ERROR(refused(keys), ErrorCode::invalid_argument, "4 heads", "3 heads of keys");
  DecoderConfig odd = llama;
  odd.head_width = 5;
  EXPECT_ERROR(refused(odd), ErrorCode::invalid_argument, "heads of 5 numbers");
  Graph graph;
  nn::Context context(graph, nn::Mode::inference);
  Value* tokens = graph.add_input(InputRole::input, "tokens", {DataType::int32, {1, 13}});
  EXPECT_ERROR(models::decoder(context, small_decoders().front().config, tokens), ErrorCode::invalid_argument,
               "13 tokens", "12 positions");
}

}  // namespace
}  // namespace tessera::testing
