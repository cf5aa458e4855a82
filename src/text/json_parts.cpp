#include "text/json_parts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "tessera/base/text.h"

namespace tessera::text {
namespace {

// The parts of one that is a list of others, or itself; lists may hold lists.
void for_each_part(const Json& json, const std::string& where, std::string_view file, const char* list,
                   const std::function<void(const JsonObject&)>& visit, int depth = 0) {
  constexpr int kDeepest = 8;
  const JsonObject part(json, where, file);
  if (part.text("type") != "Sequence") return visit(part);
  require(depth < kDeepest, ErrorCode::invalid_file, "{}: {} holds lists in lists in lists", file, where);
  for (const Json& inner : part.array(list)) for_each_part(inner, where, file, list, visit, depth + 1);
}

std::string replaced_text(const JsonObject& part) {
  const JsonObject pattern = part.object("pattern");
  if (pattern.find("String") == nullptr) part.refuse("'Replace' of a regular expression");
  std::string text = pattern.text("String");
  require(!text.empty(), ErrorCode::invalid_file, "{}: {} replaces an empty text", part.file(), part.where());
  return text;
}

std::unique_ptr<Normalizer> normalizer_of(const JsonObject& part) {
  const std::string type = part.text("type");
  if (type == "BertNormalizer") {
    const bool lower_case = part.boolean("lowercase", true);
    return bert_normalizer({.clean = part.boolean("clean_text", true),
                            .split_ideographs = part.boolean("handle_chinese_chars", true),
                            .strip_accents = part.boolean("strip_accents", lower_case),
                            .lower_case = lower_case});
  }
  if (type == "Lowercase") return lower_case_normalizer();
  if (type == "StripAccents") return strip_accents_normalizer();
  if (type == "Strip")
    return strip_normalizer(part.boolean("strip_left", true), part.boolean("strip_right", true));
  if (type == "Prepend") return prepend_normalizer(part.text("prepend"));
  if (type == "Replace") return replace_normalizer(replaced_text(part), part.text("content"));
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") return unicode_normalizer(type);
  part.refuse(fmt::format("'{}'", type));
}

SplitBehavior behavior_of(const JsonObject& part, const std::string& fallback) {
  static const std::map<std::string, SplitBehavior> behaviors = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  const std::string name = part.text("behavior", fallback);
  const auto found = behaviors.find(name);
  if (found == behaviors.end()) part.refuse(fmt::format("behavior '{}'", name));
  return found->second;
}

// What a regular expression finds that finds this text.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char character : text) {
    const bool plain = static_cast<uint8_t>(character) >= 0x80 || is_letter(character) || is_digit(character);
    result += plain ? std::string(1, character) : std::string("\\") + character;
  }
  return result;
}

std::unique_ptr<PreTokenizer> split_of(const JsonObject& part) {
  const JsonObject pattern = part.object("pattern");
  const std::string text =
      pattern.find("Regex") != nullptr ? pattern.text("Regex") : quoted(pattern.text("String"));
  return pattern_pre_tokenizer(text, behavior_of(part, "Isolated"), part.boolean("invert", false),
                               part.file());
}

std::unique_ptr<PreTokenizer> pre_tokenizer_of(const JsonObject& part) {
  const std::string type = part.text("type");
  if (type == "BertPreTokenizer") return bert_pre_tokenizer();
  if (type == "Whitespace") return word_pre_tokenizer();
  if (type == "WhitespaceSplit") return white_space_pre_tokenizer();
  if (type == "Punctuation") return punctuation_pre_tokenizer(behavior_of(part, "Isolated"));
  if (type == "Digits") return digit_pre_tokenizer(part.boolean("individual_digits", false));
  if (type == "Split") return split_of(part);
  part.refuse(fmt::format("'{}'", type));
}

// Reads the post-processor, in its two forms of files.
class Surroundings {
 public:
  explicit Surroundings(TokenizerParts& parts) : parts_(parts) {}

  void read(const JsonObject& part) {
    const std::string type = part.text("type");
    if (type == "BertProcessing") {
      parts_.surroundings = bert_template(own_token(part, "cls"), own_token(part, "sep"));
    } else if (type == "RobertaProcessing") {
      read_roberta(part);
    } else if (type == "TemplateProcessing") {
      read_template(part);
    } else if (type == "ByteLevel") {
      read_offsets(part);
    } else {
      part.refuse(fmt::format("'{}'", type));
    }
  }

 private:
  // ["[SEP]", 102]
  int32_t own_token(const JsonObject& part, const char* key) const {
    const Json& value = part.array(key);
    require(value.size() == 2 && value[1].is_number_integer(), ErrorCode::invalid_file,
            "{}: {}.{} is no pair of a token and its id", part.file(), part.where(), key);
    return checked(value[1].get<int64_t>(), part);
  }

  int32_t checked(int64_t id, const JsonObject& part) const {
    require(id >= 0 && id < parts_.vocabulary.size(), ErrorCode::invalid_file,
            "{}: {} adds the token {}, which is none of the {} of the vocabulary", part.file(), part.where(),
            id, parts_.vocabulary.size());
    return static_cast<int32_t>(id);
  }

  void read_offsets(const JsonObject& part) {
    parts_.trims_offsets = part.boolean("trim_offsets", true);
    parts_.trims_first_space = !part.boolean("add_prefix_space", true);
  }

  void read_roberta(const JsonObject& part) {
    using Kind = TemplatePiece::Kind;
    const int32_t begin = own_token(part, "cls");
    const int32_t end = own_token(part, "sep");
    parts_.surroundings.single = {{.ids = {begin}}, {.kind = Kind::first}, {.ids = {end}}};
    parts_.surroundings.pair = parts_.surroundings.single;
    parts_.surroundings.pair.push_back({.ids = {end}});
    parts_.surroundings.pair.push_back({.kind = Kind::second});
    parts_.surroundings.pair.push_back({.ids = {end}});
    read_offsets(part);
  }

  void read_template(const JsonObject& part) {
    parts_.surroundings.single = pieces_of(part, "single");
    parts_.surroundings.pair = pieces_of(part, "pair");
    const auto has = [](const std::vector<TemplatePiece>& pieces, TemplatePiece::Kind kind) {
      return std::any_of(pieces.begin(), pieces.end(),
                         [kind](const TemplatePiece& piece) { return piece.kind == kind; });
    };
    require(!has(parts_.surroundings.single, TemplatePiece::Kind::second), ErrorCode::invalid_file,
            "{}: {}.single has a second text", part.file(), part.where());
  }

  std::vector<TemplatePiece> pieces_of(const JsonObject& part, const char* key) const {
    std::vector<TemplatePiece> pieces;
    for (const Json& entry : part.array(key)) {
      const JsonObject piece(entry, part.where() + "." + key, part.file());
      const bool is_text = piece.find("Sequence") != nullptr;
      const JsonObject content = piece.object(is_text ? "Sequence" : "SpecialToken");
      TemplatePiece& made = pieces.emplace_back();
      const int64_t type = content.integer("type_id", 0);
      require(type >= 0 && type < 256, ErrorCode::invalid_file, "{}: {} has the type {}, expected 0 to 255",
              part.file(), piece.where(), type);
      made.type = static_cast<int32_t>(type);
      const std::string id = content.text("id");
      if (is_text) {
        require(id == "A" || id == "B", ErrorCode::invalid_file, "{}: {} has the text '{}', expected A or B",
                part.file(), piece.where(), id);
        made.kind = id == "A" ? TemplatePiece::Kind::first : TemplatePiece::Kind::second;
      } else {
        made.ids = special_ids(part, id);
      }
    }
    return pieces;
  }

  std::vector<int32_t> special_ids(const JsonObject& part, const std::string& name) const {
    const JsonObject token = part.object("special_tokens").object(name.c_str());
    std::vector<int32_t> ids;
    for (const Json& id : token.array("ids")) {
      require(id.is_number_integer(), ErrorCode::invalid_file, "{}: an id of {} is no whole number",
              part.file(), token.where());
      ids.push_back(checked(id.get<int64_t>(), part));
    }
    return ids;
  }

  TokenizerParts& parts_;
};

}  // namespace

void read_normalizers(const JsonObject& file, TokenizerParts& parts) {
  const Json* json = file.find("normalizer");
  if (json == nullptr) return;
  for_each_part(*json, "normalizer", file.file(), "normalizers",
                [&](const JsonObject& part) { parts.normalizers.push_back(normalizer_of(part)); });
}

bool read_pre_tokenizers(const JsonObject& file, TokenizerParts& parts) {
  bool byte_level = false;
  const Json* json = file.find("pre_tokenizer");
  if (json == nullptr) return byte_level;
  for_each_part(*json, "pre_tokenizer", file.file(), "pretokenizers", [&](const JsonObject& part) {
    if (byte_level) part.refuse("after 'ByteLevel'");
    byte_level = part.text("type") == "ByteLevel";
    if (!byte_level) return parts.pre_tokenizers.push_back(pre_tokenizer_of(part));
    parts.prefix_space = part.boolean("add_prefix_space", true);
    if (parts.prefix_space && !parts.pre_tokenizers.empty())
      part.refuse("with add_prefix_space after others");
    if (part.boolean("use_regex", true)) parts.pre_tokenizers.push_back(byte_level_pre_tokenizer());
  });
  return byte_level;
}

void read_surroundings(const JsonObject& file, TokenizerParts& parts) {
  const Json* json = file.find("post_processor");
  if (json == nullptr) return;
  Surroundings surroundings(parts);
  for_each_part(*json, "post_processor", file.file(), "processors",
                [&](const JsonObject& part) { surroundings.read(part); });
}

void read_decoder(const JsonObject& file, TokenizerParts& parts) {
  const Json* json = file.find("decoder");
  parts.decoder = spaced_decoder();
  if (json == nullptr) return;
  const JsonObject part(*json, "decoder", file.file());
  const std::string type = part.text("type");
  if (type == "WordPiece") {
    parts.decoder = word_piece_decoder(part.text("prefix", "##"), part.boolean("cleanup", true));
  } else if (type == "ByteLevel") {
    parts.decoder = byte_level_decoder();
  } else {
    part.refuse(fmt::format("'{}'", type));
  }
}

}  // namespace tessera::text
