// A network that translates: it reads a text and says another one, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/models/transformer.h"
#include "tessera/nn/task.h"
#include "tessera/train/beam_search.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/generation.h"

namespace tessera::tasks {

struct TranslationOptions {
  models::TransformerConfig network = {
      .width = 128, .encoder_layers = 2, .decoder_layers = 2, .heads = 4, .inner = 512};
  // How much of the right token's share all others are wanted to have together, in training; fairseq's label
  // smoothing.
  double smoothing = 0.1;
};

// A Transformer (models/transformer.h) that is trained on texts beside their translations.
//   inputs:    source, target, labels int32 [batch, tokens], source_lengths, target_lengths int32 [batch], as
//              data::ParallelTokens has them
//   objective: loss, the mean of the smoothed cross-entropy in nats of every token of a translation and its
//   end served:    logits fp32 [batch, tokens, vocabulary], of the token after each place of the target
nn::Task translation(const TranslationOptions& options);

// How texts are translated.
struct TranslatorOptions {
  train::BeamOptions search = {};       // but for its longest, which the lengths say
  std::vector<int64_t> lengths = {64};  // tokens of a row, rising: texts are filled up to the first that
                                        // holds them and a token after them, and cut to the last
  double most_growth = 2;  // a translation has at most so many times the tokens of its text's row
  int64_t texts = 32;      // at once
};

// Of texts, each tokens without any around them, what the network says is their translation: the best first,
// by score. Several at once share each pass of the network. Throws as train::beam_search() and `serve`.
std::vector<std::vector<train::FoundText>> translate(const train::Serving& serve,
                                                     const models::TransformerConfig& network,
                                                     const TranslatorOptions& options,
                                                     const std::vector<std::vector<int32_t>>& texts);

// What translations are measured by.
struct TranslationTest {
  std::function<std::string(std::span<const int32_t> tokens)> text;  // what tokens stand for
  TranslatorOptions translator;
  int64_t translated = 0;  // the first so many texts; 0: all
};
// "bleu" of translations, as sacreBLEU counts it; "perplexity" of the right translations, "loss", its
// logarithm, and "accuracy", how many of their tokens are the likeliest ones.
train::EvaluatorMaker translation_evaluator(const models::TransformerConfig& network,
                                            const TranslationTest& test);

}  // namespace tessera::tasks
