// BERT (Devlin et al. 2019, arXiv:1810.04805): an encoder of text that was trained to fill gaps and to tell
// whether one text follows another, and is then fine tuned with another head. Variables are named as
// transformers names them, so that files of either are those of the other; bert_files.h reads and writes
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/nn/context.h"
#include "tessera/nn/unpadding.h"

namespace tessera::models {

// The defaults are BERT-base.
struct BertConfig {
  int64_t vocabulary = 30522;
  int64_t width = 768;  // a multiple of the heads
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t inner = 3072;     // width between the two linear layers of each layer
  int64_t positions = 512;  // tokens of a row at most
  int64_t segments = 2;
  double dropout = 0.1;                  // of the embeddings and of what each half of a layer adds
  double attention_dropout = 0;          // of attention's weights; 0.1 in the paper
  double epsilon = 1e-12;                // of the layer norms
  double deviation = 0.02;               // of the weights at the start
  int64_t padding = 0;                   // the token that fills rows; only files name it
  std::vector<std::string> labels = {};  // what bert_label_logits() tells apart, by name
  bool operator==(const BertConfig&) const = default;
};

inline BertConfig bert_base() {
  return {};
}
inline BertConfig bert_large() {
  return {.width = 1024, .layers = 24, .heads = 16, .inner = 4096};
}
// Turc et al. 2019 (arXiv:1908.08962).
inline BertConfig bert_tiny() {
  return {.width = 128, .layers = 2, .heads = 2, .inner = 512};
}

// Of N rows of so many tokens, all int32 [N, tokens].
struct BertInputs {
  Value* tokens = nullptr;
  Value* segments = nullptr;  // below BertConfig::segments; null: all are of the first
  Value* lengths = nullptr;   // [N]: how many tokens of a row, the first ones, are attended to; null: all
  // Of rows that hold several texts, in the place of `lengths`: the number of each token's text, which
  // attends to no other (padding is one of its own), and its place there. Null: a row is one.
  Value* texts = nullptr;
  Value* positions = nullptr;
  // Of N texts in a list, in the place of the last three: tokens and segments are [1, its size].
  const nn::TokenList* list = nullptr;
};

// What the network says of each token, [N, tokens, width], of a list [1, its size, width]. Throws
// Error(invalid_argument) where the heads do not divide the width, or rows have more tokens than there are
// positions.
Value* bert_encoder(nn::Context& context, const BertConfig& config, const BertInputs& inputs);
// Of each row, by its first token: encoded [N, tokens, width] -> [N, width].
Value* bert_pooler(nn::Context& context, const BertConfig& config, Value* encoded);
// The same of each text in a row, by what was encoded of its first token: [..., width] -> [..., width].
Value* bert_pooled(nn::Context& context, const BertConfig& config, Value* first);
// Logits of the tokens at places: [..., width] -> [..., vocabulary], by the table of the words' embeddings.
// Whoever wants them at a few places gives what was encoded there, and the others cost nothing.
Value* bert_token_logits(nn::Context& context, const BertConfig& config, Value* encoded);
// Logits of whether the second text follows the first (0) or is any other (1): pooled [..., width] -> [...,
// 2].
Value* bert_next_sentence(nn::Context& context, const BertConfig& config, Value* pooled);

// Heads of fine tuning. Logits of BertConfig::labels, of a row by what was pooled or of tokens by what was
// encoded: [..., width] -> [..., labels]. Throws Error(invalid_argument) where there are less than two.
Value* bert_label_logits(nn::Context& context, const BertConfig& config, Value* x);
// Logits of where in a row a span begins, and of its last token: encoded [N, tokens, width] -> [N, tokens]
// each.
struct BertSpanLogits {
  Value* starts = nullptr;
  Value* ends = nullptr;
};
BertSpanLogits bert_span_logits(nn::Context& context, const BertConfig& config, Value* encoded);

// What a file holds, with the name that transformers has for it.
enum class BertForm : uint8_t {
  pretraining,              // BertForPreTraining: a whole network as it is pretrained
  encoder,                  // BertModel: encoder and pooler alone
  sequence_classification,  // BertForSequenceClassification
  token_classification,     // BertForTokenClassification, which has no pooler
  question_answering        // BertForQuestionAnswering, which has none either
};

// The variables of such a network, named as those of BertForPreTraining where that has them.
std::vector<nn::Variable> bert_variables(const BertConfig& config, BertForm form = BertForm::pretraining);

}  // namespace tessera::models
