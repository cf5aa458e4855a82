// Any file either is refused with an Error or is a tokenizer: its tokens are of its vocabulary, stand in the
// text in their order, and become a text again.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/text/tokenizer.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = tessera::text::parse_tokenizer_json(json, "input");
    const std::string_view text = "A caf\xC3\xA9, \xE6\xB0\xB4 [MASK]<m> 12 it's\n \xFF";
    const auto encoding = tokenizer.encode_pair(text, json.substr(0, 200), {.offsets = true});
    if (encoding.offsets.size() != encoding.ids.size() || encoding.types.size() != encoding.ids.size())
      std::abort();
    for (const int32_t id : encoding.ids) {
      if (id < 0 || id >= tokenizer.vocabulary_size()) std::abort();
    }
    for (const tessera::text::Span& place : encoding.offsets) {
      if (place.begin > place.end || place.end > std::max<size_t>(text.size(), 200)) std::abort();
    }
    (void)tokenizer.decode(encoding.ids);
  } catch (const tessera::Error&) {
  }
  return 0;
}
