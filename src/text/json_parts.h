// The parts of a tokenizer.json beside its model. All throw Error(unsupported) naming what is not known here.
#pragma once

#include "text/json.h"
#include "text/tokenizer_parts.h"

namespace tessera::text {

void read_normalizers(const JsonObject& file, TokenizerParts& parts);
// Whether words are read as bytes.
bool read_pre_tokenizers(const JsonObject& file, TokenizerParts& parts);
// After the vocabulary and the added tokens.
void read_surroundings(const JsonObject& file, TokenizerParts& parts);
void read_decoder(const JsonObject& file, TokenizerParts& parts);

}  // namespace tessera::text
