// Texts of different lengths without the padding that makes rows of one length of them: their tokens in one
// list, text after text. What is computed of each token alone is computed of the list; what looks at the
// other tokens of a text, as attention does, takes rows and gives a list again. NVIDIA's "unpad" of MLPerf's
// BERT.
#pragma once

#include <cstdint>

#include "tessera/ops/expression.h"

namespace tessera::nn {

class TokenList {
 public:
  // lengths: int32 [N], of texts whose rows have so many `tokens`. The list has `size` places, at least as
  // many as all lengths add up to. Those left over at its end hold the first token: nothing may read what is
  // computed of them.
  TokenList(Value* lengths, int64_t tokens, int64_t size);

  int64_t size() const { return size_; }
  Value* lengths() const { return lengths_; }  // as they were given
  Value* places() const {
    return places_;
  }                                      // int32 [N, tokens], of a row's tokens in the list; at padding any
  Value* fits() const { return fits_; }  // a boolean scalar: whether the list has enough places
  ops::Expression positions() const;     // int32 [1, size], of a token in its text

  // [N, tokens, ...] -> [1, size, ...].
  ops::Expression to_list(Value* rows) const;
  // [1, size, ...] -> [N, tokens, ...], with tokens of other texts in place of padding. Gradients are exact
  // where those at padding are zero, as attention's are that hides it.
  ops::Expression to_rows(Value* list) const;

 private:
  int64_t size_;
  Value* lengths_;
  Value* places_;
  Value* sources_;  // int32 [1, size]: which of the places of all rows each of the list is
  Value* fits_;
};

}  // namespace tessera::nn
