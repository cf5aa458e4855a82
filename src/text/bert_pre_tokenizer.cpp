#include <array>

#include "text/pre_tokenizer.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

enum class Kind : uint8_t { inside, space, mark };

Kind kind_of(char32_t character) {
  if (is_white_space(character)) return Kind::space;
  return bert::is_punctuation(character) ? Kind::mark : Kind::inside;
}

std::array<Kind, 128> ascii_kinds() {
  std::array<Kind, 128> kinds{};
  for (char32_t character = 0; character < kinds.size(); ++character) kinds[character] = kind_of(character);
  return kinds;
}

class BertPreTokenizer : public PreTokenizer {
 public:
  void split(std::string_view text, uint32_t base, Spans& words) const override {
    size_t word = 0;  // where the present one begins
    const auto end_word = [&](size_t end) {
      if (end > word)
        words.push_back({base + static_cast<uint32_t>(word), base + static_cast<uint32_t>(end)});
    };
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const char32_t character = next_character(text, at);
      const Kind kind = character < 0x80 ? ascii_[character] : kind_of(character);
      if (kind == Kind::inside) continue;
      end_word(begin);
      word = begin;
      if (kind == Kind::mark) end_word(at);
      word = at;
    }
    end_word(text.size());
  }

 private:
  std::array<Kind, 128> ascii_ = ascii_kinds();
};

}  // namespace

std::unique_ptr<PreTokenizer> bert_pre_tokenizer() {
  return std::make_unique<BertPreTokenizer>();
}

}  // namespace tessera::text
