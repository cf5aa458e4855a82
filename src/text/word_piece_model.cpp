#include "tessera/base/error.h"

#include "text/byte_trie.h"
#include "text/models.h"
#include "text/unicode.h"

namespace tessera::text {
namespace {

class WordPieceModel : public Model {
 public:
  WordPieceModel(const Vocabulary& vocabulary, const WordPieceSettings& settings, int32_t unknown)
      : unknown_(unknown), longest_word_(static_cast<size_t>(settings.longest_word)) {
    for (const std::string& token : vocabulary.tokens()) {
      const std::optional<int32_t> id = vocabulary.find(token);
      if (token.empty() || !id) continue;
      begins_.insert(token, *id);
      const bool continues =
          token.starts_with(settings.continuing) && token.size() > settings.continuing.size();
      if (continues) continues_.insert(std::string_view(token).substr(settings.continuing.size()), *id);
    }
  }

  std::string_view kind() const override { return "wordpiece"; }

  void tokenize(std::string_view word, std::vector<Piece>& pieces, JoinMemory& /*memory*/) const override {
    const size_t before = pieces.size();
    const auto length = static_cast<uint32_t>(word.size());
    if (word.size() > longest_word_ && count_characters(word) > longest_word_)
      return pieces.push_back({unknown_, 0, length});
    for (uint32_t at = 0; at < length;) {
      const ByteTrie::Match match = (at == 0 ? begins_ : continues_).longest(word.substr(at));
      if (match.value < 0) {
        pieces.resize(before);
        return pieces.push_back({unknown_, 0, length});
      }
      const uint32_t end = at + static_cast<uint32_t>(match.length);
      pieces.push_back({match.value, at, end});
      at = end;
    }
  }

 private:
  ByteTrie begins_;
  ByteTrie continues_;
  int32_t unknown_;
  size_t longest_word_;
};

}  // namespace

std::unique_ptr<Model> word_piece_model(const Vocabulary& vocabulary, const WordPieceSettings& settings,
                                        std::string_view file) {
  const std::optional<int32_t> unknown = vocabulary.find(settings.unknown);
  require(unknown.has_value(), ErrorCode::invalid_file,
          "{}: the unknown token '{}' is none of the {} tokens of the vocabulary", file, settings.unknown,
          vocabulary.size());
  require(settings.longest_word >= 1, ErrorCode::invalid_file,
          "{}: words of at most {} characters, expected 1 or more", file, settings.longest_word);
  return std::make_unique<WordPieceModel>(vocabulary, settings, *unknown);
}

}  // namespace tessera::text
