// A vocabulary, and after a form feed merges: either is refused with an Error or tokenizes any text. Of
// bytes, the tokens of a text become the text again where the vocabulary has all of its bytes.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/text/tokenizer.h"

#include "fuzz.h"

namespace {

void tokenize(const tessera::text::Tokenizer& tokenizer, std::string_view text) {
  const auto encoding = tokenizer.encode(text, {.offsets = true});
  for (const int32_t id : encoding.ids) {
    if (id < 0 || id >= tokenizer.vocabulary_size()) std::abort();
  }
  for (const tessera::text::Span& place : encoding.offsets) {
    if (place.begin > place.end || place.end > text.size()) std::abort();
  }
  if (tokenizer.encode(text).ids != encoding.ids) std::abort();  // the second time some words are known
  (void)tokenizer.decode(encoding.ids);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view vocabulary = text.substr(0, text.find('\f'));
  const std::string_view merges = text.substr(std::min(vocabulary.size() + 1, text.size()));
  try {
    tokenize(tessera::text::parse_word_pieces(vocabulary, "input"), text);
  } catch (const tessera::Error&) {
  }
  try {
    tokenize(tessera::text::parse_byte_pairs(vocabulary, merges, "input"), text);
  } catch (const tessera::Error&) {
  }
  return 0;
}
