#include <array>

#include "text/pre_tokenizer.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

enum class Kind : uint8_t { letter, number, space, other };

Kind kind_of(char32_t character) {
  if (is_white_space(character)) return Kind::space;
  if (is_letter_of_any(character)) return Kind::letter;
  return is_number_of_any(character) ? Kind::number : Kind::other;
}

std::array<Kind, 128> ascii_kinds() {
  std::array<Kind, 128> kinds{};
  for (char32_t character = 0; character < kinds.size(); ++character) kinds[character] = kind_of(character);
  return kinds;
}

// How many bytes of a text that begins with an apostrophe are one of the short forms.
size_t short_form(std::string_view text) {
  for (const std::string_view form : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(form)) return form.size();
  }
  return 0;
}

class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  void split(std::string_view text, uint32_t base, Spans& words) const override {
    for (size_t at = 0; at < text.size();) {
      const size_t end = word_end(text, at);
      words.push_back({base + static_cast<uint32_t>(at), base + static_cast<uint32_t>(end)});
      at = end;
    }
  }

 private:
  Kind next_kind(std::string_view text, size_t& at) const {
    const char32_t character = next_character(text, at);
    return character < 0x80 ? ascii_[character] : kind_of(character);
  }

  size_t word_end(std::string_view text, size_t begin) const {
    if (text[begin] == '\'') {
      if (const size_t length = short_form(text.substr(begin)); length > 0) return begin + length;
    }
    size_t at = begin;
    Kind kind = next_kind(text, at);
    if (kind == Kind::space) {
      if (text[begin] != ' ' || at == text.size()) return space_end(text, begin);
      kind = next_kind(text, at);  // a space belongs to what follows it
      if (kind == Kind::space) return space_end(text, begin);
    }
    return run_end(text, at, kind);
  }

  size_t run_end(std::string_view text, size_t at, Kind kind) const {
    while (at < text.size()) {
      size_t next = at;
      if (next_kind(text, next) != kind) break;
      at = next;
    }
    return at;
  }

  // All of a run at the end of the text; otherwise the last space is left to what follows, unless it is the
  // only one.
  size_t space_end(std::string_view text, size_t begin) const {
    const size_t end = run_end(text, begin, Kind::space);
    if (end == text.size()) return end;
    const size_t last = character_before(text, end);
    return last > begin ? last : end;
  }

  std::array<Kind, 128> ascii_ = ascii_kinds();
};

}  // namespace

std::unique_ptr<PreTokenizer> byte_level_pre_tokenizer() {
  return std::make_unique<ByteLevelPreTokenizer>();
}

}  // namespace tessera::text
