#include "tessera/train/generation.h"

#include <gtest/gtest.h>

#include "tessera/data/rows.h"
#include "tessera/tasks/language_model.h"
#include "tessera/train/trainer.h"

#include "support/digit_text.h"
#include "support/expect_error.h"
#include "train/tiny.h"

namespace tessera::testing {
namespace {

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
