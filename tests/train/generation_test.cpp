#include "tessera/train/generation.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "tessera/data/rows.h"
#include "tessera/tasks/language_model.h"
#include "tessera/train/trainer.h"

#include "support/digit_text.h"
#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

using train::draw_token;

constexpr int64_t kDraws = 20000;

// How often each of the tokens is drawn.
template <size_t Count>
std::array<double, Count> shares(const std::array<float, Count>& logits, const train::Sampling& sampling) {
  std::array<double, Count> result{};
  for (int64_t step = 0; step < kDraws; ++step)
    result[static_cast<size_t>(draw_token(logits, sampling, step))] += 1.0 / kDraws;
  return result;
}

// Within four deviations of what the softmax of the logits divided by the temperature says.
TEST(DrawToken, FollowsTheProbabilities) {
  const std::array<float, 3> logits{0, 1, 2};
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const std::array<double, 3> drawn = shares(logits, {.temperature = temperature});
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double share = std::exp(logits[i] / temperature) / sum;
      EXPECT_NEAR(drawn[i], share, 4 * std::sqrt(share * (1 - share) / kDraws)) << temperature << " " << i;
    }
  }
}

TEST(DrawToken, TakesTheLikeliestWhereNothingIsLeftToChance) {
  const std::array<float, 4> logits{1, 3, 3, 2};
  for (int64_t step = 0; step < 50; ++step) {
    EXPECT_EQ(draw_token(logits, {.temperature = 0}, step), 1) << "the first of equal ones";
    EXPECT_EQ(draw_token(logits, {.top_k = 1}, step), 1);
    EXPECT_EQ(draw_token(logits, {.top_p = 1e-6}, step), 1);
  }
  const std::array<float, 3> sure{0, INFINITY, -INFINITY};
  EXPECT_EQ(draw_token(sure, {}, 0), 1);
}

TEST(DrawToken, LeavesOutWhatIsUnlikely) {
  const std::array<float, 4> logits{std::log(4.0F), std::log(3.0F), std::log(2.0F), std::log(1.0F)};
  const std::array<double, 4> two = shares(logits, {.top_k = 2});
  EXPECT_NEAR(two[0], 4.0 / 7, 0.02);
  EXPECT_EQ(two[2] + two[3], 0);
  // 0.4 and 0.3 are less than 0.75 together, so that the third is among them.
  const std::array<double, 4> three = shares(logits, {.top_p = 0.75});
  EXPECT_NEAR(three[2], 2.0 / 9, 0.02);
  EXPECT_EQ(three[3], 0);
}

TEST(DrawToken, DependsOnSeedAndStepAlone) {
  const std::array<float, 8> logits{};
  int64_t other_seed = 0, other_step = 0;
  for (int64_t step = 0; step < 100; ++step) {
    const int64_t token = draw_token(logits, {.seed = 3}, step);
    EXPECT_EQ(token, draw_token(logits, {.seed = 3}, step));
    other_seed += token != draw_token(logits, {.seed = 4}, step) ? 1 : 0;
    other_step += token != draw_token(logits, {.seed = 3}, step + 1) ? 1 : 0;
  }
  EXPECT_GT(other_seed, 50);
  EXPECT_GT(other_step, 50);
}

TEST(DrawToken, RefusesWhatMeansNothing) {
  const std::array<float, 2> logits{0, 1};
  EXPECT_ERROR(draw_token({}, {}, 0), ErrorCode::invalid_argument, "no tokens");
  EXPECT_ERROR(draw_token(logits, {.temperature = -1}, 0), ErrorCode::invalid_argument, "temperature of -1");
  EXPECT_ERROR(draw_token(logits, {.top_k = -1}, 0), ErrorCode::invalid_argument, "-1 likeliest");
  EXPECT_ERROR(draw_token(logits, {.top_p = 0}, 0), ErrorCode::invalid_argument, "probability of 0");
  EXPECT_ERROR(draw_token(std::array<float, 2>{0, NAN}, {}, 0), ErrorCode::not_finite, "not a number");
  EXPECT_ERROR(draw_token(std::array<float, 2>{-INFINITY, -INFINITY}, {}, 0), ErrorCode::not_finite,
               "no token");
}

constexpr int64_t kRow = 6;
constexpr int64_t kVocabulary = 10;

const models::DecoderConfig kNetwork{
    .vocabulary = kVocabulary, .width = 32, .layers = 1, .heads = 2, .inner = 128, .positions = kRow};

// Digits that count up, from anywhere.
train::Trainer counting_trainer() {
  Tensor tokens(DataType::int32, {200, kRow});
  for (int64_t i = 0; i < tokens.size(); ++i)
    tokens.set(i, static_cast<double>((i / kRow + i % kRow) % kVocabulary));
  train::Trainer trainer(tasks::language_model({.network = kNetwork, .tokens = kRow}),
                         {.optimizer = optim::adamw({.learning_rate = 1e-2}), .device = Device::cpu()});
  trainer.fit(data::Rows({{"tokens", tokens}}, {.batch_size = 20}), {.epochs = 20});
  return trainer;
}

train::Serving serving(train::Trainer& trainer) {
  return [&trainer](const nn::Task& task) { return trainer.serve(task); };
}

train::TextContinuation digits() {
  return {.window = kRow - 1,
          .start = {4},
          .tokens = digit_tokens,
          .text = digit_text,
          .passes = [](int64_t capacity) { return tasks::language_model_passes(kNetwork, capacity); }};
}

// From less than a row, from more, and from nothing.
TEST(ContinueText, GoesOnPastARow) {
  train::Trainer trainer = counting_trainer();
  const train::Serving serve = serving(trainer);
  const auto text_after = [&](std::string_view prompt, train::GenerationOptions options) {
    std::string text;
    options.sampling.temperature = 0;
    const auto keep = [&](std::string_view piece) {
      text += piece;
      return true;
    };
    const int64_t drawn = train::continue_text(serve, digits(), prompt, options, keep);
    return text + " " + std::to_string(drawn);
  };
  EXPECT_EQ(text_after("78", {.tokens = 15}), "901234567890123 15");
  EXPECT_EQ(text_after("01234567890123", {.tokens = 3}), "456 3");
  EXPECT_EQ(text_after("", {.tokens = 2}), "56 2");
  // A stop is left out with what follows, and its beginning is not given away before.
  EXPECT_EQ(text_after("0", {.tokens = 20, .stops = {"x", "56"}}), "1234 6");
  EXPECT_EQ(text_after("0", {.tokens = 5, .stops = {"59"}}), "12345 5");
}

TEST(ContinueText, EndsBeforeATokenThatEndsIt) {
  train::Trainer trainer = counting_trainer();
  train::TextContinuation ending = digits();
  ending.ends = {9, 7};
  std::string text;
  const auto keep = [&](std::string_view piece) {
    text += piece;
    return true;
  };
  // What may be the beginning of a stop is given then.
  const train::GenerationOptions options{.tokens = 20, .sampling = {.temperature = 0}, .stops = {"67"}};
  EXPECT_EQ(train::continue_text(serving(trainer), ending, "23", options, keep), 3);
  EXPECT_EQ(text, "456");
}

TEST(ContinueText, EndsWhereNoMoreIsWanted) {
  train::Trainer trainer = counting_trainer();
  const train::Serving serve = serving(trainer);
  int pieces = 0;
  const auto three = [&](std::string_view) { return ++pieces < 3; };
  EXPECT_EQ(train::continue_text(serve, digits(), "1", {.tokens = 50}, three), 3);
  EXPECT_EQ(pieces, 3);
}

TEST(ContinueText, NeedsSomethingToGoOnFrom) {
  train::Trainer trainer = counting_trainer();
  const train::Serving serve = serving(trainer);
  train::TextContinuation without_start = digits();
  without_start.start.clear();
  const auto ignore = [](std::string_view) { return true; };
  EXPECT_ERROR(train::continue_text(serve, without_start, "", {}, ignore), ErrorCode::invalid_argument,
               "give a prompt");
}

// Bytes of one character come together.
TEST(ContinueText, GivesWholeCharacters) {
  train::Trainer trainer = counting_trainer();
  const train::Serving serve = serving(trainer);
  train::TextContinuation euros = digits();
  euros.text = [](std::span<const int32_t> tokens) {
    constexpr std::string_view kEuro = "\xe2\x82\xac";
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) text += kEuro[i % kEuro.size()];
    return text;
  };
  std::vector<std::string> pieces;
  const auto keep = [&](std::string_view piece) {
    pieces.emplace_back(piece);
    return true;
  };
  train::continue_text(serve, euros, "1", {.tokens = 6}, keep);
  EXPECT_EQ(pieces, (std::vector<std::string>(2, "\xe2\x82\xac")));
}

}  // namespace
}  // namespace tessera::testing
