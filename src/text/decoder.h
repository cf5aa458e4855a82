// From tokens back to text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "text/vocabulary.h"

namespace tessera::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Of ids of that vocabulary.
  virtual std::string decode(std::span<const int32_t> ids, const Vocabulary& vocabulary) const = 0;
};

// Spaces between words; `clean_up` takes those before punctuation marks and English short forms away.
std::unique_ptr<Decoder> word_piece_decoder(std::string continuing, bool clean_up);
// Bytes, with U+FFFD for what is no UTF-8 (byte_alphabet.h).
std::unique_ptr<Decoder> byte_level_decoder();
// The tokens with spaces between them.
std::unique_ptr<Decoder> spaced_decoder();

}  // namespace tessera::text
