#include "text/decoder.h"

#include <utility>

#include "text/byte_alphabet.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

void replace_all(std::string& text, std::string_view pattern, std::string_view content) {
  for (size_t at = text.find(pattern); at != std::string::npos; at = text.find(pattern, at + content.size()))
    text.replace(at, pattern.size(), content);
}

// Of one token with the space before it, in this order.
void clean_up(std::string& token) {
  constexpr std::pair<const char*, const char*> kReplaced[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [pattern, content] : kReplaced) replace_all(token, pattern, content);
}

class WordPieceDecoder : public Decoder {
 public:
  WordPieceDecoder(std::string continuing, bool cleans)
      : continuing_(std::move(continuing)), cleans_(cleans) {}

  std::string decode(std::span<const int32_t> ids, const Vocabulary& vocabulary) const override {
    std::string text;
    bool first = true;
    for (const int32_t id : ids) {
      std::string token = vocabulary.token(id);
      if (!std::exchange(first, false)) {
        if (token.starts_with(continuing_)) {
          token.erase(0, continuing_.size());
        } else {
          token.insert(0, " ");
        }
      }
      if (cleans_) clean_up(token);
      text += token;
    }
    return text;
  }

 private:
  std::string continuing_;
  bool cleans_;
};

class ByteLevelDecoder : public Decoder {
 public:
  std::string decode(std::span<const int32_t> ids, const Vocabulary& vocabulary) const override {
    std::string bytes;
    for (const int32_t id : ids) {
      const std::string& token = vocabulary.token(id);
      bytes += from_alphabet(token).value_or(token);
    }
    return well_formed(bytes);
  }
};

class SpacedDecoder : public Decoder {
 public:
  std::string decode(std::span<const int32_t> ids, const Vocabulary& vocabulary) const override {
    std::string text;
    for (const int32_t id : ids) text += (text.empty() ? "" : " ") + vocabulary.token(id);
    return text;
  }
};

}  // namespace

std::unique_ptr<Decoder> word_piece_decoder(std::string continuing, bool clean_up) {
  return std::make_unique<WordPieceDecoder>(std::move(continuing), clean_up);
}

std::unique_ptr<Decoder> byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}

std::unique_ptr<Decoder> spaced_decoder() {
  return std::make_unique<SpacedDecoder>();
}

}  // namespace tessera::text
