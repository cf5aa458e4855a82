// Hugging Face's tokenizer.json: https://huggingface.co/docs/tokenizers (version 1.0 of the file).
#include <utility>

#include "text/json.h"
#include "text/json_parts.h"
#include "text/models.h"
#include "text/tokenizer_parts.h"

namespace tessera::text {
namespace {

void read_vocabulary(const JsonObject& model, Vocabulary& vocabulary) {
  const Json& tokens = model.at("vocab");
  require(tokens.is_object(), ErrorCode::invalid_file, "{}: {}.vocab is {}, expected an object", model.file(),
          model.where(), tokens.type_name());
  for (const auto& [token, id] : tokens.items()) {
    require(id.is_number_integer(), ErrorCode::invalid_file,
            "{}: the id of '{}' is {}, expected a whole number", model.file(), token, id.type_name());
    vocabulary.add(token, id.get<int64_t>(), model.file());
  }
}

std::unique_ptr<Model> word_pieces(const JsonObject& model, const Vocabulary& vocabulary) {
  return word_piece_model(vocabulary,
                          {.unknown = model.text("unk_token", "[UNK]"),
                           .continuing = model.text("continuing_subword_prefix", "##"),
                           .longest_word = model.integer("max_input_chars_per_word", 100)},
                          model.file());
}

// "a b", or ["a", "b"].
std::pair<std::string, std::string> merge_of(const Json& merge, const JsonObject& model) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  const std::string text = merge.is_string() ? merge.get<std::string>() : "";
  const size_t space = text.find(' ');
  require(space != std::string::npos && text.find(' ', space + 1) == std::string::npos,
          ErrorCode::invalid_file, "{}: a merge of {}.merges is no pair of tokens", model.file(),
          model.where());
  return {text.substr(0, space), text.substr(space + 1)};
}

std::unique_ptr<Model> byte_pairs(const JsonObject& model, const Vocabulary& vocabulary) {
  if (model.find("dropout") != nullptr) model.refuse("with dropout");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text(key, "").empty()) model.refuse(fmt::format("with {}", key));
  }
  if (model.boolean("byte_fallback", false)) model.refuse("with byte_fallback (use SentencePiece's .model)");
  Merges merges;
  for (const Json& merge : model.array("merges")) merges.push_back(merge_of(merge, model));
  return byte_pair_model(
      vocabulary, merges,
      {.unknown = model.text("unk_token", ""), .whole_words = model.boolean("ignore_merges", false)},
      model.file());
}

std::string kind_of_model(const JsonObject& model) {
  // Old files do not say it.
  return model.text("type", model.find("merges") != nullptr ? "BPE" : "WordPiece");
}

std::string normalized(const std::string& content, const TokenizerParts& parts) {
  AlignedText present{.bytes = content};
  for (const auto& normalizer : parts.normalizers) {
    AlignedText result;
    normalizer->apply(present, result);
    present = std::move(result);
  }
  return present.bytes;
}

void read_added_tokens(const JsonObject& file, TokenizerParts& parts) {
  if (file.find("added_tokens") == nullptr) return;
  for (const Json& entry : file.array("added_tokens")) {
    const JsonObject token(entry, "added_tokens", file.file());
    const std::string content = token.text("content");
    const int64_t id = token.integer("id");
    const std::optional<int32_t> known = parts.vocabulary.find(content);
    if (!known || *known != id) parts.vocabulary.add(content, id, file.file());
    const AddedToken added{.content = content,
                           .id = static_cast<int32_t>(id),
                           .special = token.boolean("special", false),
                           .single_word = token.boolean("single_word", false),
                           .left_strip = token.boolean("lstrip", false),
                           .right_strip = token.boolean("rstrip", false),
                           .normalized = token.boolean("normalized", true)};
    parts.added.add(added, added.normalized ? normalized(content, parts) : content);
  }
}

}  // namespace

Tokenizer parse_tokenizer_json(std::string_view json, std::string_view name) {
  const Json parsed = parse_json(json, name);
  const JsonObject file(parsed, "the file", name);
  TokenizerParts parts;
  const JsonObject model(file.at("model"), "model", name);
  const std::string kind = kind_of_model(model);
  if (kind != "WordPiece" && kind != "BPE") model.refuse(fmt::format("'{}'", kind));
  read_vocabulary(model, parts.vocabulary);
  read_normalizers(file, parts);
  const bool byte_level = read_pre_tokenizers(file, parts);
  if (byte_level != (kind == "BPE"))
    model.refuse(fmt::format("'{}' {} bytes", kind, byte_level ? "of" : "not of"));
  parts.model = kind == "BPE" ? byte_pairs(model, parts.vocabulary) : word_pieces(model, parts.vocabulary);
  read_added_tokens(file, parts);
  read_surroundings(file, parts);
  read_decoder(file, parts);
  return Tokenizer(std::move(parts));
}

}  // namespace tessera::text
