// Passes with kept keys and values beside those over whole rows.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/models/formula.h"
#include "tessera/tasks/language_model.h"
#include "tessera/train/generation.h"
#include "tessera/train/step.h"

#include "models/golden_network.h"
#include "models/small_decoders.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/expect_error.h"

namespace tessera::testing {
namespace {

constexpr int64_t kPositions = 170;  // of which a prompt takes several blocks

models::DecoderConfig with_positions(models::DecoderConfig config) {
  config.positions = kPositions;
  return config;
}

// A network on a device, with weights by the formula.
class Network {
 public:
  Network(const models::DecoderConfig& config, const std::shared_ptr<Device>& device)
      : config_(config),
        variables_(formula_variables(device, models::decoder_variables(config))),
        whole_(serve()(tasks::language_model({.network = config, .tokens = config.positions}))) {}

  train::Serving serve(Precision precision = Precision::fp32) const {
    return [variables = variables_, precision](const nn::Task& task) {
      return train::serve(task, variables, {.passes = {.precision = precision}});
    };
  }
  train::TextContinuation continuation(int64_t window) const {
    return {.window = window,
            .start = {},
            .tokens = [](std::string_view text) { return std::vector<int32_t>(text.begin(), text.end()); },
            .text =
                [](std::span<const int32_t> tokens) {
                  std::string text;
                  for (const int32_t token : tokens) text += static_cast<char>(token);
                  return text;
                },
            .passes = [config = config_](
                          int64_t capacity) { return tasks::language_model_passes(config, capacity); }};
  }
  // By a pass over the whole row, of which these tokens are the beginning.
  std::vector<double> logits_after(std::span<const int32_t> tokens) {
    Tensor row(DataType::int32, {1, kPositions});
    std::copy(tokens.begin(), tokens.end(), row.data<int32_t>().begin());
    const Tensor logits = whole_.at({{"batch", 1}})->run({{"tokens", row}}).at("logits");
    const std::vector<double> all = logits.to_doubles();
    const auto end = all.begin() + std::ssize(tokens) * config_.vocabulary;
    return {end - config_.vocabulary, end};
  }

 private:
  models::DecoderConfig config_;
  std::shared_ptr<Variables> variables_;
  ExecutableFamily whole_;
};

// 1e-5 are a hundred and sixty roundings to fp32, of logits of a few layers of numbers of about one; sums are
// of other parts, as keys lie where there is room for more.
constexpr Tolerance kRounding{.absolute = 1e-5, .relative = 1e-5};

// In parts of all sizes: single tokens, less than a block, a block, and more than one; then from the
// beginning, over what is left of the row before.
TEST(TextReader, SaysWhatPassesOverWholeRowsSay) {
  const Tensor labels = models::formula::labels("text", kPositions, 29);
  const std::span<const int32_t> tokens = std::as_const(labels).data<int32_t>();
  for (const auto& device : available_devices()) {
    for (const auto& [name, config] : small_decoders()) {
      Network network(with_positions(config), device);
      train::TextReader reader(network.continuation(kPositions), network.serve(), kPositions);
      for (const std::vector<size_t>& parts : {std::vector<size_t>{1, 1, 20, 64, 1, 66, 17}, {150, 1, 1}}) {
        SCOPED_TRACE(name + " on " + device->description().name);
        reader.forget();
        size_t end = 0;
        for (const size_t part : parts) {
          const Tensor logits = reader.read(tokens.subspan(end, part));
          end += part;
          ASSERT_EQ(logits.shape(), (Shape{1, 29}));
          expect_close(logits, network.logits_after(tokens.first(end)), kRounding,
                       "after " + std::to_string(end));
        }
        EXPECT_EQ(reader.size(), static_cast<int64_t>(end));
      }
    }
  }
}

// A layer of GPT-2's form rounds some eight times on a number's way to the logits, by a third of a unit of
// 2^-8 of what is up to two: what a few layers do at random is two units, and five times that leaves room.
// One of Llama's rounds 13 times, with rotations and three steps of SwiGLU, which at random is as much more
// as the root of that.
TEST(TextReader, KeepsTokensInThePrecisionsType) {
  const Tensor labels = models::formula::labels("text", kPositions, 29);
  const std::span<const int32_t> tokens = std::as_const(labels).data<int32_t>();
  for (const auto& [name, config] : small_decoders()) {
    SCOPED_TRACE(name);
    const double roundings = config.form == models::DecoderForm::llama ? 13 : 8;
    const Tolerance rounded{.absolute = 10 * 0x1p-7 * std::sqrt(roundings / 8), .relative = 0};
    const train::StepGraph pass =
        train::build_frozen(tasks::language_model_passes(with_positions(config), 8),
                            train::Reading::inference, {{"tokens", 1}}, {}, {}, DataType::bf16);
    const auto is_kept = [](const nn::Variable& variable) { return variable.advances; };
    EXPECT_EQ(std::ranges::count_if(pass.variables, is_kept), 2 * config.layers);
    for (const nn::Variable& variable : pass.variables) {
      if (!is_kept(variable)) continue;
      EXPECT_EQ(variable.data_type, DataType::bf16) << variable.name;
    }
    Network network(with_positions(config), Device::cpu());
    train::TextReader reader(network.continuation(kPositions), network.serve(Precision::bf16), kPositions);
    reader.read(tokens.first(20));
    expect_close(reader.read(tokens.subspan(20, 1)), network.logits_after(tokens.first(21)), rounded, "bf16");
  }
}

TEST(TextReader, ReadsOneThingAtATime) {
  Network network(with_positions(small_decoders().front().config), Device::cpu());
  train::TextReader reader(network.continuation(8), network.serve(), 8);
  const std::vector<int32_t> tokens(2, 1);
  EXPECT_ERROR(reader.finish(), ErrorCode::invalid_argument, "no tokens are being read");
  reader.begin(tokens);
  EXPECT_ERROR(reader.begin(tokens), ErrorCode::invalid_argument, "tokens are being read already");
  EXPECT_EQ(reader.finish().shape(), (Shape{1, 29}));
  reader.begin(tokens);  // and is not finished
}

TEST(TextReader, RefusesMoreThanThereIsRoomFor) {
  Network network(with_positions(small_decoders().front().config), Device::cpu());
  train::TextReader reader(network.continuation(8), network.serve(), 8);
  const std::vector<int32_t> tokens(9, 1);
  EXPECT_ERROR(reader.read(tokens), ErrorCode::invalid_argument, "9 tokens after 0", "room for 8");
  reader.read(std::span(tokens).first(8));
  EXPECT_ERROR(reader.read(std::span(tokens).first(1)), ErrorCode::invalid_argument, "1 tokens after 8");
  EXPECT_ERROR(reader.read({}), ErrorCode::invalid_argument, "no tokens");
  EXPECT_ERROR(train::TextReader(network.continuation(8), network.serve(), kPositions + 1),
               ErrorCode::invalid_argument, "171 tokens", "170 positions");
}

// The likeliest tokens are those of passes over whole rows, of which the older half is forgotten when there
// is no room for one more.
TEST(ContinueText, TakesTheTokensThatPassesOverWholeRowsGive) {
  for (const auto& [name, config] : small_decoders()) {
    Network network(with_positions(config), Device::cpu());
    // What is forgotten while text is drawn, and a prompt that is longer than what is seen.
    for (const auto& [window, prompt] :
         {std::pair<int64_t, size_t>{7, 1}, std::pair<int64_t, size_t>{100, 130}}) {
      SCOPED_TRACE(name + ", " + std::to_string(prompt) + " tokens seen by " + std::to_string(window));
      std::vector<int32_t> tokens(prompt);
      for (size_t i = 0; i < prompt; ++i)
        tokens[i] = static_cast<int32_t>(1 + models::formula::label("prompt", i, 28));
      const std::string given(tokens.begin(), tokens.end());
      constexpr int64_t kDrawn = 12;
      std::string expected;
      auto seen = std::min(window, std::ssize(tokens));
      for (int64_t drawn = 0; drawn < kDrawn; ++drawn) {
        if (seen > window) seen = window - window / 2;
        const std::vector<double> logits =
            network.logits_after(std::span(tokens).last(static_cast<size_t>(seen)));
        tokens.push_back(
            static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
        ++seen;
        expected += static_cast<char>(tokens.back());
      }
      std::string text;
      const auto keep = [&](std::string_view piece) {
        text += piece;
        return true;
      };
      const train::GenerationOptions options{.tokens = kDrawn, .sampling = {.temperature = 0}};
      EXPECT_EQ(train::continue_text(network.serve(), network.continuation(window), given, options, keep),
                kDrawn);
      EXPECT_EQ(text, expected);
    }
  }
}

}  // namespace
}  // namespace tessera::testing
