#include "text/normalizer.h"

#include <utility>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>

#include "tessera/base/error.h"

#include "text/unicode.h"

namespace tessera::text {
namespace {

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(const AlignedText& text, AlignedText& result) const override {
    size_t begin = 0;
    size_t end = text.bytes.size();
    for (size_t at = 0; left_ && at < end; begin = at) {
      if (!is_white_space(next_character(text.bytes, at))) break;
    }
    while (right_ && end > begin) {
      const size_t last = character_before(text.bytes, end);
      size_t at = last;
      if (!is_white_space(next_character(text.bytes, at))) break;
      end = last;
    }
    result.append(text, begin, end);
  }

 private:
  bool left_;
  bool right_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}

  void apply(const AlignedText& text, AlignedText& result) const override {
    if (text.bytes.empty()) return;
    result.append(prefix_, text.origin_of(0, 1));
    result.append(text, 0, text.bytes.size());
  }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  Replace(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(const AlignedText& text, AlignedText& result) const override {
    size_t done = 0;
    while (true) {
      const size_t found = text.bytes.find(pattern_, done);
      if (found == std::string::npos) break;
      result.append(text, done, found);
      result.append(content_, text.origin_of(found, found + pattern_.size()));
      done = found + pattern_.size();
    }
    result.append(text, done, text.bytes.size());
  }

 private:
  std::string pattern_;
  std::string content_;
};

// Pieces between boundaries of normalization are normalized alone, and all that one becomes comes from all of
// it.
class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(const icu::Normalizer2* form) : form_(form) {}

  void apply(const AlignedText& text, AlignedText& result) const override {
    size_t done = 0;
    for (size_t at = 0; at < text.bytes.size();) {
      next_character(text.bytes, at);
      size_t ahead = at;
      if (at < text.bytes.size() &&
          form_->hasBoundaryBefore(static_cast<UChar32>(next_character(text.bytes, ahead))) == 0)
        continue;
      append_normalized(text, done, at, result);
      done = at;
    }
  }

 private:
  void append_normalized(const AlignedText& text, size_t begin, size_t end, AlignedText& result) const {
    if (end - begin == 1) return result.append(text, begin, end);  // ASCII is normalized in all forms
    std::string bytes;
    icu::StringByteSink<std::string> sink(&bytes);
    UErrorCode error = U_ZERO_ERROR;
    form_->normalizeUTF8(0, icu::StringPiece(text.bytes.data() + begin, static_cast<int32_t>(end - begin)),
                         sink, nullptr, error);
    require(U_SUCCESS(error) != 0, ErrorCode::internal, "ICU cannot normalize: {}", u_errorName(error));
    result.append(bytes, text.origin_of(begin, end));
  }

  const icu::Normalizer2* form_;
};

const icu::Normalizer2* form_of(const std::string& name) {
  UErrorCode error = U_ZERO_ERROR;
  const bool compatible = name.starts_with("NFK");
  const UNormalization2Mode mode = name.back() == 'C' ? UNORM2_COMPOSE : UNORM2_DECOMPOSE;
  const icu::Normalizer2* form =
      icu::Normalizer2::getInstance(nullptr, compatible ? "nfkc" : "nfc", mode, error);
  require(U_SUCCESS(error) != 0, ErrorCode::internal, "ICU has no {}: {}", name, u_errorName(error));
  return form;
}

}  // namespace

std::unique_ptr<Normalizer> strip_normalizer(bool left, bool right) {
  return std::make_unique<Strip>(left, right);
}

std::unique_ptr<Normalizer> prepend_normalizer(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}

std::unique_ptr<Normalizer> replace_normalizer(std::string pattern, std::string content) {
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}

std::unique_ptr<Normalizer> unicode_normalizer(const std::string& form) {
  return std::make_unique<UnicodeForm>(form_of(form));
}

}  // namespace tessera::text
