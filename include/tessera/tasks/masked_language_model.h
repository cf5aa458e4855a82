// A network that fills gaps in text, and says whether two pieces of it stand in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/nn/task.h"
#include "tessera/train/evaluator.h"
#include "tessera/train/prediction.h"

namespace tessera::tasks {

struct MaskedLanguageModelOptions {
  int64_t tokens = 64;       // of a row, an even number
  int64_t vocabulary = 256;  // tokens are below it
  // The token of the vocabulary that stands for what is masked; none: one more than the vocabulary has.
  std::optional<int64_t> mask = {};
  std::vector<int64_t> kept = {};  // tokens that are never to be filled in, such as separators
  int64_t width = 64;
  int64_t heads = 4;
  int64_t layers = 2;
  double dropout = 0;
  double masked = 0.15;  // share of the places to be filled in

  int64_t mask_token() const { return mask.value_or(vocabulary); }
  int64_t all_tokens() const { return vocabulary + (mask ? 0 : 1); }  // with the mask
};

// Devlin et al. 2019 (arXiv:1810.04805) with normalization before each part (Xiong et al. 2020), and the
// order of two halves for the next sentence (Lan et al. 2020, arXiv:1909.11942), after a convolution over
// neighbors. Of the places to be filled in
// 8 of 10 hold the mask, 1 any token, 1 what was there. The words' embeddings are the output's weights, too.
//   inputs:    tokens int32 [batch, tokens]
//   objective: loss, the sum of masked (mean cross-entropy of the places to be filled in) and order (binary
//              cross-entropy of whether the halves of a row were exchanged)
//   served:    logits fp32 [batch, tokens, all tokens], of tokens some of which are the mask
// Throws Error(invalid_argument) where a row has no halves or the mask is none of the vocabulary.
nn::Task masked_language_model(const MaskedLanguageModelOptions& options = {});

// "masked_accuracy", how many places are filled with what was there, and "order_accuracy"; masks and
// exchanges are the same at each evaluation.
train::EvaluatorMaker masked_language_model_evaluator();

// For prediction: "tokens" with the mask in the options' share of places, the same ones at each call, and
// "labels", what was there. tokens: int32 [rows, tokens] of the vocabulary.
Feeds with_gaps(const Tensor& tokens, const MaskedLanguageModelOptions& options);
// Of such rows: the text with its gaps and as the network fills them, and how many gaps were filled with what
// was there. `shown` is how people read a token; none: as a byte.
train::PredictionTextMaker masked_language_model_text(const MaskedLanguageModelOptions& options,
                                                      std::function<std::string(int64_t token)> shown = {});

}  // namespace tessera::tasks
