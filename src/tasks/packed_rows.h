// Rows that hold several texts, one after another, by the length of each.
#pragma once

#include "tessera/graph/graph.h"
#include "tessera/models/bert.h"

namespace tessera::tasks {

struct PackedRows {
  Value* lengths;    // int32 [batch]: of all texts of a row together
  Value* shown;      // int32 [batch, tokens]: 1 where there is a text, 0 at padding
  Value* texts;      // int32 [batch, tokens]: the number of each token's text in its row
  Value* positions;  // int32 [batch, tokens]: the place of each token in its text
  Value*
      firsts;  // int32 [batch, texts]: each text's first token among those of all rows; any where it has none
  Value* has_text;  // fp32 [batch, texts]: 1 where there is a text
};
// lengths: int32 [batch, texts], 0 where there is none, after the others.
PackedRows packed_rows(Value* lengths, int64_t tokens);

}  // namespace tessera::tasks
