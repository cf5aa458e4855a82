// A network that goes on with text: at each place it says which token comes next.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tessera/models/decoder.h"
#include "tessera/nn/task.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct LanguageModelOptions {
  models::DecoderConfig network = {
      .vocabulary = 256, .width = 64, .layers = 2, .heads = 4, .inner = 256, .positions = 64};
  int64_t tokens = 64;  // of a row, two or more, and no more than there are positions
};

// A decoder (models/decoder.h) that is trained on rows of tokens.
//   inputs:    tokens int32 [batch, tokens]
//   objective: loss, the mean cross-entropy in nats of every token but a row's first
//   served:    logits fp32 [batch, tokens, vocabulary], of the token after each place; of the one after a
//              row's last it has learned nothing
// Throws Error(invalid_argument) where a row has nothing to foretell.
nn::Task language_model(const LanguageModelOptions& options = {});

// train::TextContinuation::passes of such a network. Throws Error(invalid_argument) where it is built, for a
// capacity that is more than the positions.
nn::Task language_model_passes(const models::DecoderConfig& network, int64_t capacity);

// "bits_per_token", the cross-entropy to the base 2, and "next_accuracy", how many tokens are the likeliest
// ones.
train::EvaluatorMaker language_model_evaluator();

// Of rows of "tokens": the text, and below it what the network would have said at each place; and how many
// tokens it foretold. `shown` is how people read a token.
train::PredictionTextMaker language_model_text(std::function<std::string(int64_t token)> shown);

}  // namespace tessera::tasks
