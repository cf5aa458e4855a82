// A network that goes on with long text and remembers what it read before.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/models/transformer_xl.h"
#include "tessera/nn/task.h"
#include "tessera/train/evaluator.h"

namespace tessera::tasks {

// How many labels of each cluster a batch of so many rows, of one of so many ranks, has at most
// (data::TokenLanes::most_labels); empty where it is not known.
using MostLabels = std::function<std::vector<int64_t>(int64_t rows, int64_t ranks)>;

struct TransformerXlOptions {
  models::TransformerXlConfig network = {
      .vocabulary = {.tokens = 256}, .width = 64, .layers = 2, .heads = 4, .inner = 256};
  int64_t tokens = 64;              // of a segment
  int64_t memory = 64;              // tokens that training remembers of those before it
  int64_t evaluation_memory = 128;  // and evaluation, where a longer memory foretells better
  // Clusters are computed for so many places alone (nn::adaptive_losses); none: for all. A batch with more
  // ends a training with Error(not_finite), and an evaluation with a perplexity that is no number.
  MostLabels training_labels = {};
  MostLabels evaluation_labels = {};
};

// A Transformer-XL (models/transformer_xl.h) that is trained on segments of long text, those of a batch's
// rows going on where the rows of the batch before ended (data::TokenLanes).
//   inputs:    tokens int32 [batch, tokens]; labels int32 [batch, tokens], the token after each, or -100;
//              begins int32 [batch], not 0 where nothing stands before a row
//   objective: loss, the mean cross-entropy in nats of labels that are none of -100
//   served:    logits fp32 [batch, tokens, vocabulary] of the token after each place, as logarithms of
//              probabilities, of rows before which nothing stands
// Throws Error(invalid_argument) for segments without a token or a negative memory.
nn::Task transformer_xl(const TransformerXlOptions& options = {});

// train::TextContinuation::passes of such a network, which remembers so many tokens. A pass whose first place
// is 0 begins a text; others go on after the pass before them.
nn::Task transformer_xl_passes(const models::TransformerXlConfig& network, int64_t memory);

// "perplexity" of tokens, "bits_per_token", and of what `text` says that tokens stand for
// "bits_per_character", where it is not empty. Characters are those of UTF-8.
train::EvaluatorMaker transformer_xl_evaluator(
    std::function<std::string(std::span<const int32_t> tokens)> text = {});

}  // namespace tessera::tasks
