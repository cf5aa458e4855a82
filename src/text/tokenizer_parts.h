// What a tokenizer is made of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/model.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace tessera::text {

// What stands around texts: tokens of its own, or one of the texts.
struct TemplatePiece {
  enum class Kind : uint8_t { tokens, first, second };
  Kind kind = Kind::tokens;
  int32_t type = 0;
  std::vector<int32_t> ids;  // of its own
};

struct Template {
  std::vector<TemplatePiece> single = {{.kind = TemplatePiece::Kind::first}};
  std::vector<TemplatePiece> pair = {{.kind = TemplatePiece::Kind::first},
                                     {.kind = TemplatePiece::Kind::second, .type = 1}};
};

// BERT's: [CLS] A [SEP], and B [SEP] of type 1.
Template bert_template(int32_t begin, int32_t separator);

struct TokenizerParts {
  Vocabulary vocabulary;
  AddedTokens added;
  std::vector<std::unique_ptr<Normalizer>> normalizers;
  bool prefix_space = false;  // what is cut into words begins with a space
  std::vector<std::unique_ptr<PreTokenizer>> pre_tokenizers;
  std::unique_ptr<Model> model;
  Template surroundings;
  std::unique_ptr<Decoder> decoder;
  bool trims_offsets = false;      // places of tokens are those of their text without the spaces
  bool trims_first_space = false;  // that of a text's first token too, which is the prefix otherwise
};

}  // namespace tessera::text
