// Transformer-XL beside plain torch (tests/golden/transformer_xl.py).
#include "tessera/models/transformer_xl.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/compile/feeds.h"
#include "tessera/ops/functions.h"
#include "tessera/train/checkpoint.h"

#include "models/golden_network.h"
#include "models/small_transformer_xls.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

using models::TransformerXlConfig;

constexpr int64_t kRows = 3;
constexpr int64_t kTokens = 5;
constexpr int64_t kMemory = 7;
constexpr int64_t kVocabulary = 29;

std::vector<std::shared_ptr<Device>> devices_and_reference() {
  std::vector<std::shared_ptr<Device>> devices = available_devices();
  devices.push_back(Device::reference());
  return devices;
}

// A pass over a segment of `tokens`. Outputs "logits", and in training "loss" and "gradient.NAME".
struct Pass {
  Graph graph;
  std::vector<nn::Variable> parameters;
  std::vector<nn::Variable> states;
};

std::unique_ptr<Pass> segment_pass(const TransformerXlConfig& config, int64_t tokens, int64_t memory,
                                   nn::Mode mode) {
  auto pass = std::make_unique<Pass>();
  Graph& graph = pass->graph;
  nn::Context context(graph, mode);
  const TensorType of_tokens{DataType::int32, {kRows, tokens}};
  Value* given = graph.add_input(InputRole::input, "tokens", of_tokens);
  Value* begins = graph.add_input(InputRole::input, "begins", {DataType::int32, {kRows}});
  const nn::SegmentMemory kept(context, "memory", memory, {.begins = begins, .tokens = tokens});
  Value* decoded = models::transformer_xl(context, config, given, &kept);
  graph.add_output("logits", models::transformer_xl_logits(context, config, decoded));
  Value* loss = nullptr;
  if (mode == nn::Mode::training) {
    Value* labels = graph.add_input(InputRole::input, "labels", of_tokens);
    loss = ops::reduce_mean(models::transformer_xl_losses(context, config, decoded, labels));
    graph.add_output("loss", ops::reshape(loss, {1}));
  }
  std::vector<Value*> parameters;
  for (const nn::Variable& variable : context.variables()) {
    const bool is_state = variable.role == InputRole::state;
    (is_state ? pass->states : pass->parameters).push_back(variable);
    if (!is_state) parameters.push_back(graph.find_input(variable.name));
  }
  if (loss == nullptr) return pass;
  const std::vector<Value*> gradients = differentiate(graph, loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i)
    graph.add_output("gradient." + parameters[i]->name(), gradients[i]);
  return pass;
}

// With the weights of the formula, and memories of which nothing is filled.
std::shared_ptr<Executable> prepared(const Pass& pass, const std::shared_ptr<Device>& device) {
  CompileOptions options;
  options.pipeline.verify = true;
  std::shared_ptr<Executable> executable = compile(pass.graph, device, options);
  const auto variables = formula_variables(device, pass.parameters);
  train::initialize_variables(*variables, pass.states, 0);
  executable->bind(variables);
  return executable;
}

Tensor numbers(const std::string& name, const Shape& shape) {
  return models::formula::labels(name, element_count(shape), kVocabulary).reshape(shape);
}

Tensor begins(bool first, int64_t rows = kRows) {
  return Tensor::full(DataType::int32, {rows}, first ? 1 : 0);
}

// 1e-5 are a hundred and sixty roundings to fp32, of sums of a few layers of numbers of about one.
constexpr Tolerance kClose{.absolute = 1e-5, .relative = 1e-5};

TEST(TransformerXl, GivesTorchsLogitsLossAndGradientsOfTwoSegmentsOnEachDevice) {
  const data::SafetensorsFile golden = open_golden("transformer_xl");
  for (const auto& [name, config] : small_transformer_xls()) {
    const std::unique_ptr<Pass> pass = segment_pass(config, kTokens, kMemory, nn::Mode::training);
    for (const auto& device : devices_and_reference()) {
      SCOPED_TRACE(name + " on " + device->description().name);
      const std::string prefix = name + "/";
      const auto executable = prepared(*pass, device);
      Feeds outputs;
      for (const char* number : {"0", "1"}) {
        outputs = executable->run(
            {{"tokens", numbers(std::string("transformer_xl.tokens.") + number, {kRows, kTokens})},
             {"labels", numbers(std::string("transformer_xl.labels.") + number, {kRows, kTokens})},
             {"begins", begins(number[0] == '0')}});
        for (const char* output : {"logits", "loss"}) {
          const std::string key = prefix + output + "." + number;
          expect_close(outputs.at(output), golden.read(key).to_doubles(), kClose, key);
        }
      }
      for (const nn::Variable& variable : pass->parameters) {
        const std::string key = "gradient." + variable.name;
        EXPECT_TRUE(digest_is_close(outputs.at(key).to_doubles(), golden.read(prefix + key).to_doubles()))
            << key;
      }
    }
  }
}

// The first so many tokens of each row after others.
Tensor part_of_rows(const Tensor& rows, int64_t first, int64_t count) {
  Tensor part(rows.data_type(), {rows.shape()[0], count});
  for (int64_t i = 0; i < part.size(); ++i)
    part.set(i, rows.at(i / count * rows.shape()[1] + first + i % count));
  return part;
}

// Every number but the last layers' is a function of the tokens before it, so that two segments of L with a
// memory of L say what one of 2 L says. A longer memory, of which a part is never filled, changes nothing.
TEST(TransformerXl, SaysOfTwoSegmentsWhatItSaysOfOneTwiceAsLong) {
  const Tensor tokens = numbers("transformer_xl.whole", {kRows, 2 * kTokens});
  for (const auto& [name, config] : small_transformer_xls()) {
    for (const auto& device : devices_and_reference()) {
      SCOPED_TRACE(name + " on " + device->description().name);
      const auto whole_pass = segment_pass(config, 2 * kTokens, 0, nn::Mode::inference);
      const Tensor whole =
          prepared(*whole_pass, device)->run({{"tokens", tokens}, {"begins", begins(true)}}).at("logits");
      for (const int64_t memory : {kTokens, 2 * kTokens + 3}) {
        const auto half_pass = segment_pass(config, kTokens, memory, nn::Mode::inference);
        const auto halves = prepared(*half_pass, device);
        // Text before that the second run forgets.
        halves->run({{"tokens", part_of_rows(tokens, 2, kTokens)}, {"begins", begins(true)}});
        for (const int64_t half : {0, 1}) {
          const Tensor own = halves
                                 ->run({{"tokens", part_of_rows(tokens, half * kTokens, kTokens)},
                                        {"begins", begins(half == 0)}})
                                 .at("logits");
          std::vector<double> expected;
          for (int64_t row = 0; row < kRows; ++row) {
            for (int64_t i = 0; i < kTokens * kVocabulary; ++i)
              expected.push_back(whole.at((2 * row + half) * kTokens * kVocabulary + i));
          }
          expect_close(own, expected, kClose, "half " + std::to_string(half));
        }
      }
    }
  }
}

TEST(TransformerXl, ForgetsTheTextBeforeARowThatBegins) {
  const TransformerXlConfig config = small_transformer_xls().front().config;
  const auto pass = segment_pass(config, kTokens, kMemory, nn::Mode::inference);
  const Tensor first = numbers("transformer_xl.first", {kRows, kTokens});
  const Tensor second = numbers("transformer_xl.second", {kRows, kTokens});
  const auto logits_after = [&](const std::vector<int32_t>& which) {
    const auto executable = prepared(*pass, Device::cpu());
    executable->run({{"tokens", first}, {"begins", begins(true)}});
    return executable->run({{"tokens", second}, {"begins", Tensor::from<int32_t>({kRows}, which)}})
        .at("logits");
  };
  const Tensor all = logits_after({1, 1, 1}), none = logits_after({0, 0, 0}), one = logits_after({0, 1, 0});
  constexpr int64_t kOfRow = kTokens * kVocabulary;
  for (int64_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(one.at(i), (i / kOfRow == 1 ? all : none).at(i), 1e-6) << i;
  EXPECT_GT(std::abs(all.at(0) - none.at(0)), 1e-3);
}

TEST(TransformerXl, HasTheSizesOfThePaper) {
  const auto count = [](const TransformerXlConfig& config) {
    return static_cast<double>(models::parameter_count(models::transformer_xl_variables(config)));
  };
  // In millions: of enwik8's 12 layers, and of WikiText-103's standard network.
  EXPECT_NEAR(count({}) / 1e6, 41, 0.5);
  EXPECT_NEAR(count(models::transformer_xl_base()) / 1e6, 151, 0.5);
}

TEST(TransformerXl, RefusesWhatDoesNotDivide) {
  const auto refused = [](const TransformerXlConfig& config) {
    return models::transformer_xl_variables(config);
  };
  EXPECT_ERROR(refused({.width = 16, .heads = 3}), ErrorCode::invalid_argument, "width of 16", "3 heads");
  EXPECT_ERROR(refused({.width = 15, .heads = 3}), ErrorCode::invalid_argument, "positions of 15 numbers");
  EXPECT_ERROR(refused({.vocabulary = {.tokens = 10, .cutoffs = {5, 5}}}), ErrorCode::invalid_argument,
               "at 5 they do not");
  EXPECT_ERROR(refused({.vocabulary = {.tokens = 10, .cutoffs = {10}}}), ErrorCode::invalid_argument,
               "at 10 they do not");
  EXPECT_ERROR(refused({.vocabulary = {.tokens = 10, .cutoffs = {2, 5}}, .width = 8, .heads = 2}),
               ErrorCode::invalid_argument, "the tokens from 5 on have no width left of 8");
}

}  // namespace
}  // namespace tessera::testing
