// What is done to a text before it is cut into words.
#pragma once

#include <memory>
#include <string>

#include "text/aligned_text.h"

namespace tessera::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Of `text`, which is another, into `result`, which is empty and tracks origins where `text` does.
  virtual void apply(const AlignedText& text, AlignedText& result) const = 0;
};

struct BertNormalization {
  bool clean = true;             // control characters go, white space becomes a space
  bool split_ideographs = true;  // a space on either side
  bool strip_accents = true;
  bool lower_case = true;
};
std::unique_ptr<Normalizer> bert_normalizer(const BertNormalization& options);

std::unique_ptr<Normalizer> lower_case_normalizer();
std::unique_ptr<Normalizer> strip_accents_normalizer();  // of text that is decomposed already
std::unique_ptr<Normalizer> strip_normalizer(bool left, bool right);
std::unique_ptr<Normalizer> prepend_normalizer(std::string prefix);
std::unique_ptr<Normalizer> replace_normalizer(std::string pattern, std::string content);
// "NFC", "NFD", "NFKC" or "NFKD" (Unicode Standard Annex 15).
std::unique_ptr<Normalizer> unicode_normalizer(const std::string& form);

}  // namespace tessera::text
