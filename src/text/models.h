// The models that files name.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/model.h"
#include "text/vocabulary.h"

namespace tessera::text {

struct WordPieceSettings {
  std::string unknown = "[UNK]";
  std::string continuing = "##";
  int64_t longest_word = 100;
};
// The longest token first, from the left (Schuster & Nakajima 2012; as BERT's). A word with a part that no
// token begins is the unknown token. Throws Error(invalid_file) naming `file` where that is none of the
// vocabulary.
std::unique_ptr<Model> word_piece_model(const Vocabulary& vocabulary, const WordPieceSettings& settings,
                                        std::string_view file);

using Merges = std::vector<std::pair<std::string, std::string>>;

struct BytePairSettings {
  std::string unknown;       // for bytes that are no token; "": they are left out
  bool whole_words = false;  // a word that is a token is that token, whatever the merges give
};
// Of bytes, joined by the merges, the best first (Sennrich et al. 2016, Radford et al. 2019). Tokens are
// written in the alphabet of byte_alphabet.h. Throws Error(invalid_file) naming `file` for a merge of what is
// no token.
std::unique_ptr<Model> byte_pair_model(const Vocabulary& vocabulary, const Merges& merges,
                                       const BytePairSettings& settings, std::string_view file);

}  // namespace tessera::text
