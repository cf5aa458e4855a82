// SentencePiece models (Kudo & Richardson 2018), through their library.
#include <memory>
#include <utility>

#include "tessera/base/error.h"

#include "text/tokenizer_parts.h"

#ifdef TESSERA_SENTENCE_PIECE
#include <sentencepiece_processor.h>
#endif

namespace tessera::text {

#ifdef TESSERA_SENTENCE_PIECE

namespace {

using Processor = sentencepiece::SentencePieceProcessor;

// Its own normalization, words and joining of tokens are the library's.
class SentencePieceModel : public Model {
 public:
  explicit SentencePieceModel(std::shared_ptr<const Processor> processor)
      : processor_(std::move(processor)) {}

  std::string_view kind() const override { return "sentence_piece"; }
  bool by_words() const override { return false; }

  void tokenize(std::string_view word, std::vector<Piece>& pieces, JoinMemory& /*memory*/) const override {
    const sentencepiece::ImmutableSentencePieceText text =
        processor_->EncodeAsImmutableProto({word.data(), word.size()});
    for (size_t i = 0; i < text.pieces_size(); ++i) {
      const auto piece = text.pieces(static_cast<int>(i));
      pieces.push_back({static_cast<int32_t>(piece.id()), piece.begin(), piece.end()});
    }
  }

 private:
  std::shared_ptr<const Processor> processor_;
};

class SentencePieceDecoder : public Decoder {
 public:
  explicit SentencePieceDecoder(std::shared_ptr<const Processor> processor)
      : processor_(std::move(processor)) {}

  std::string decode(std::span<const int32_t> ids, const Vocabulary& /*vocabulary*/) const override {
    return processor_->DecodeIds({ids.begin(), ids.end()});
  }

 private:
  std::shared_ptr<const Processor> processor_;
};

void surround(TokenizerParts& parts, int32_t id, bool at_end, std::string_view name) {
  require(id >= 0, ErrorCode::invalid_argument, "{}: the model has no token for the {} of a sentence", name,
          at_end ? "end" : "beginning");
  for (auto* pieces : {&parts.surroundings.single, &parts.surroundings.pair})
    pieces->insert(at_end ? pieces->end() : pieces->begin(), TemplatePiece{.ids = {id}});
}

}  // namespace

Tokenizer parse_sentence_piece(std::string_view model, std::string_view name,
                               const SentencePieceOptions& options) {
  auto processor = std::make_shared<Processor>();
  const auto status = processor->LoadFromSerializedProto({model.data(), model.size()});
  require(status.ok(), ErrorCode::invalid_file, "{}: no SentencePiece model: {}", name, status.ToString());
  TokenizerParts parts;
  for (int id = 0; id < processor->GetPieceSize(); ++id) {
    const std::string& token = processor->IdToPiece(id);
    parts.vocabulary.add(token, id, name);
    // Control tokens stand for no text, and no text for them.
    if (processor->IsControl(id)) parts.added.add({.id = id, .special = true}, "");
  }
  if (options.begin) surround(parts, processor->bos_id(), false, name);
  if (options.end) surround(parts, processor->eos_id(), true, name);
  parts.model = std::make_unique<SentencePieceModel>(processor);
  parts.decoder = std::make_unique<SentencePieceDecoder>(processor);
  return Tokenizer(std::move(parts));
}

#else

Tokenizer parse_sentence_piece(std::string_view /*model*/, std::string_view name,
                               const SentencePieceOptions& /*options*/) {
  fail(
      ErrorCode::unsupported,
      "{}: this build has no SentencePiece; install libsentencepiece-dev (tools/setup extra) and build again",
      name);
}

#endif

}  // namespace tessera::text
