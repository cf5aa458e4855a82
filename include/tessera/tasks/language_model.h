// A network that goes on with text: at each place it says which token comes next.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tessera/nn/task.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct LanguageModelOptions {
  int64_t tokens = 64;       // of a row, two or more
  int64_t vocabulary = 256;  // tokens are below it
  int64_t width = 64;
  int64_t heads = 4;
  int64_t layers = 2;
  double dropout = 0;  // of the embeddings and of what each layer adds
};

// The decoder of GPT-2 (Radford et al. 2019): layers that norm first and attend to what stands before, a
// position's embedding beside the word's, and the words' embeddings as the output's weights.
//   inputs:    tokens int32 [batch, tokens]
//   objective: loss, the mean cross-entropy in nats of every token but a row's first
//   served:    logits fp32 [batch, tokens, vocabulary], of the token after each place; of the one after a
//              row's last it has learned nothing
// Throws Error(invalid_argument) where a row has nothing to foretell.
nn::Task language_model(const LanguageModelOptions& options = {});

// "bits_per_token", the cross-entropy to the base 2, and "next_accuracy", how many tokens are the likeliest
// ones.
train::EvaluatorMaker language_model_evaluator();

// Of rows of "tokens": the text, and below it what the network would have said at each place; and how many
// tokens it foretold. `shown` is how people read a token.
train::PredictionTextMaker language_model_text(std::function<std::string(int64_t token)> shown);

}  // namespace tessera::tasks
