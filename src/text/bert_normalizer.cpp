// BERT's: cleaning, spaces around ideographs, decomposition without accents, lower case; in one pass.
#include <algorithm>
#include <array>
#include <vector>

#include <unicode/unorm2.h>
#include <unicode/utf16.h>

#include "tessera/base/error.h"

#include "text/normalizer.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

const UNormalizer2* decomposition() {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* found = unorm2_getNFDInstance(&error);
  require(U_SUCCESS(error) != 0, ErrorCode::internal, "ICU has no decomposition: {}", u_errorName(error));
  return found;
}

// What a run of marks is put into its canonical order in: a mark waits until one without a combining class
// comes.
struct Waiting {
  char32_t character;
  Span origin;
  uint8_t combining_class;
};

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalization& options)
      : options_(options), decomposition_(decomposition()) {}

  void apply(const AlignedText& text, AlignedText& result) const override {
    std::vector<Waiting> waiting;
    for (size_t at = 0; at < text.bytes.size();) {
      const size_t begin = at;
      const char32_t character = next_character(text.bytes, at);
      const Span origin = text.origin_of(begin, begin + 1);
      if (character < 0x80) {
        add_ascii(static_cast<char>(character), origin, waiting, result);
      } else {
        add_other(character, origin, waiting, result);
      }
    }
    flush(waiting, result);
  }

 private:
  void add_ascii(char character, Span origin, std::vector<Waiting>& waiting, AlignedText& result) const {
    if (options_.clean && (character < ' ' || character == 0x7F)) {
      if (bert::is_control(static_cast<char32_t>(character))) return;
      character = ' ';
    }
    flush(waiting, result);
    if (options_.lower_case && character >= 'A' && character <= 'Z')
      character = static_cast<char>(character + 32);
    result.append({&character, 1}, origin);
  }

  void add_other(char32_t character, Span origin, std::vector<Waiting>& waiting, AlignedText& result) const {
    if (options_.clean) {
      if (character == kReplacement || bert::is_control(character)) return;
      if (is_white_space(character)) character = U' ';
    }
    const bool apart = options_.split_ideographs && bert::is_ideograph(character);
    if (apart) add_decomposed(U' ', origin, waiting, result);
    if (options_.strip_accents) {
      decompose(character, origin, waiting, result);
    } else {
      write(character, origin, result);
    }
    if (apart) add_decomposed(U' ', origin, waiting, result);
  }

  void decompose(char32_t character, Span origin, std::vector<Waiting>& waiting, AlignedText& result) const {
    constexpr int32_t kLongest = 32;  // UTF-16 units; the longest canonical decomposition has 8
    std::array<UChar, kLongest> parts{};
    UErrorCode error = U_ZERO_ERROR;
    const int32_t length = unorm2_getDecomposition(decomposition_, static_cast<UChar32>(character),
                                                   parts.data(), kLongest, &error);
    if (length < 0 || U_FAILURE(error) != 0) {
      add_decomposed(character, origin, waiting, result);
      return;
    }
    for (int32_t at = 0; at < length;) {
      UChar32 part = 0;
      U16_NEXT(parts, at, length, part);
      add_decomposed(static_cast<char32_t>(part), origin, waiting, result);
    }
  }

  void add_decomposed(char32_t character, Span origin, std::vector<Waiting>& waiting,
                      AlignedText& result) const {
    const uint8_t combining_class = unorm2_getCombiningClass(decomposition_, static_cast<UChar32>(character));
    if (combining_class != 0 && options_.strip_accents) {
      waiting.push_back({character, origin, combining_class});
      return;
    }
    flush(waiting, result);
    write_unless_accent(character, origin, result);
  }

  void flush(std::vector<Waiting>& waiting, AlignedText& result) const {
    if (waiting.empty()) return;
    std::stable_sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) {
      return a.combining_class < b.combining_class;
    });
    for (const Waiting& mark : waiting) write_unless_accent(mark.character, mark.origin, result);
    waiting.clear();
  }

  void write_unless_accent(char32_t character, Span origin, AlignedText& result) const {
    if (!options_.strip_accents || !bert::is_accent(character)) write(character, origin, result);
  }

  void write(char32_t character, Span origin, AlignedText& result) const;

  BertNormalization options_;
  const UNormalizer2* decomposition_;
};

void append_lower_case(char32_t character, Span origin, AlignedText& result) {
  constexpr char32_t kDottedI = 0x130;
  std::string bytes;
  append_character(bytes, character == kDottedI ? U'i' : lower_case(character));
  if (character == kDottedI) append_character(bytes, 0x307);
  result.append(bytes, origin);
}

void BertNormalizer::write(char32_t character, Span origin, AlignedText& result) const {
  if (options_.lower_case) return append_lower_case(character, origin, result);
  std::string bytes;
  append_character(bytes, character);
  result.append(bytes, origin);
}

class LowerCase : public Normalizer {
 public:
  void apply(const AlignedText& text, AlignedText& result) const override {
    for (size_t at = 0; at < text.bytes.size();) {
      const size_t begin = at;
      const char32_t character = next_character(text.bytes, at);
      append_lower_case(character, text.origin_of(begin, begin + 1), result);
    }
  }
};

class StripAccents : public Normalizer {
 public:
  void apply(const AlignedText& text, AlignedText& result) const override {
    for (size_t at = 0; at < text.bytes.size();) {
      const size_t begin = at;
      if (!is_mark_of_any(next_character(text.bytes, at))) result.append(text, begin, at);
    }
  }
};

}  // namespace

std::unique_ptr<Normalizer> bert_normalizer(const BertNormalization& options) {
  return std::make_unique<BertNormalizer>(options);
}

std::unique_ptr<Normalizer> lower_case_normalizer() {
  return std::make_unique<LowerCase>();
}

std::unique_ptr<Normalizer> strip_accents_normalizer() {
  return std::make_unique<StripAccents>();
}

}  // namespace tessera::text
