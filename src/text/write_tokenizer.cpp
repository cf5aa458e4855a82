#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tessera/base/file.h"
#include "tessera/text/training.h"

namespace tessera::text {
namespace {

using Json = nlohmann::ordered_json;

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// {"token": id, ...}, written by hand: an object of JSON that keeps its order searches all of it for each new
// key.
std::string ids_by_token(const LearnedVocabulary& vocabulary) {
  std::string text = "{";
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    text += fmt::format("{}{}:{}", id == 0 ? "" : ",", quoted(vocabulary.tokens[id]), id);
  return text + "}";
}

Json added_tokens(const LearnedVocabulary& vocabulary) {
  Json tokens = Json::array();
  for (size_t id = 0; id < vocabulary.options.special_tokens.size(); ++id) {
    tokens.push_back({{"id", id},
                      {"content", vocabulary.tokens[id]},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", true}});
  }
  return tokens;
}

Json piece(const char* kind, const std::string& id, int type) {
  return {{kind, {{"id", id}, {"type_id", type}}}};
}

// [CLS] A [SEP] B [SEP], where the vocabulary has them.
Json surroundings(const LearnedVocabulary& vocabulary) {
  const auto number = [&](const std::string& token) {
    const std::vector<std::string>& special = vocabulary.options.special_tokens;
    return std::find(special.begin(), special.end(), token) - special.begin();
  };
  const int64_t begin = number("[CLS]");
  const int64_t end = number("[SEP]");
  const auto count = std::ssize(vocabulary.options.special_tokens);
  if (begin == count || end == count) return nullptr;
  const auto special = [](const std::string& token, int64_t id) -> Json {
    return {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  };
  Json single = {piece("SpecialToken", "[CLS]", 0), piece("Sequence", "A", 0),
                 piece("SpecialToken", "[SEP]", 0)};
  Json pair = single;
  pair.push_back(piece("Sequence", "B", 1));
  pair.push_back(piece("SpecialToken", "[SEP]", 1));
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", {{"[CLS]", special("[CLS]", begin)}, {"[SEP]", special("[SEP]", end)}}}};
}

std::string merges_text(const LearnedVocabulary& vocabulary) {
  std::string text = "#version: 0.2\n";
  for (const auto& [left, right] : vocabulary.merges) text += fmt::format("{} {}\n", left, right);
  return text;
}

std::string word_piece_json(const LearnedVocabulary& vocabulary) {
  const bool lower_case = vocabulary.options.lower_case;
  const Json normalizer = {{"type", "BertNormalizer"},
                           {"clean_text", true},
                           {"handle_chinese_chars", true},
                           {"strip_accents", nullptr},
                           {"lowercase", lower_case}};
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":{},)"
      R"("pre_tokenizer":{{"type":"BertPreTokenizer"}},"post_processor":{},)"
      R"("decoder":{{"type":"WordPiece","prefix":"##","cleanup":true}},)"
      R"("model":{{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
      R"("max_input_chars_per_word":100,"vocab":{}}}}})",
      added_tokens(vocabulary).dump(), normalizer.dump(), surroundings(vocabulary).dump(),
      ids_by_token(vocabulary));
}

std::string byte_pair_json(const LearnedVocabulary& vocabulary) {
  Json merges = Json::array();
  for (const auto& [left, right] : vocabulary.merges) merges.push_back({left, right});
  constexpr const char* kByteLevel =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":true})";
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":null,)"
      R"("pre_tokenizer":{},"post_processor":{},"decoder":{},)"
      R"("model":{{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
      R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false,)"
      R"("vocab":{},"merges":{}}}}})",
      added_tokens(vocabulary).dump(), kByteLevel, kByteLevel, kByteLevel, ids_by_token(vocabulary),
      merges.dump());
}

}  // namespace

std::string tokenizer_json(const LearnedVocabulary& vocabulary) {
  return vocabulary.options.kind == VocabularyKind::byte_pairs ? byte_pair_json(vocabulary)
                                                               : word_piece_json(vocabulary);
}

void write_tokenizer(const LearnedVocabulary& vocabulary, const std::filesystem::path& folder) {
  make_folder(folder);
  if (vocabulary.options.kind == VocabularyKind::byte_pairs) {
    write_file(folder / "vocab.json", ids_by_token(vocabulary));
    write_file(folder / "merges.txt", merges_text(vocabulary));
  } else {
    std::string lines;
    for (const std::string& token : vocabulary.tokens) lines += token + "\n";
    write_file(folder / "vocab.txt", lines);
    const Json settings = {{"do_lower_case", vocabulary.options.lower_case}};
    write_file(folder / "tokenizer_config.json", settings.dump(2) + "\n");
  }
  // Last: it is what is read where it is there.
  write_file(folder / "tokenizer.json", tokenizer_json(vocabulary));
}

}  // namespace tessera::text
