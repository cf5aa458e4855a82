// BERT's vocab.txt; GPT-2's vocab.json with merges.txt.
#include <utility>

#include "tessera/base/error.h"

#include "text/json.h"
#include "text/models.h"
#include "text/tokenizer_parts.h"

namespace tessera::text {
namespace {

template <typename Visit>
void for_each_line(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    visit(text.substr(at, end - at));
    at = end + 1;
  }
}

std::string_view without_space_at_end(std::string_view text) {
  while (!text.empty()) {
    const size_t last = character_before(text, text.size());
    size_t at = last;
    if (!is_white_space(next_character(text, at))) break;
    text = text.substr(0, last);
  }
  return text;
}

void add_special(TokenizerParts& parts, const std::string& content) {
  const std::optional<int32_t> id = parts.vocabulary.find(content);
  if (id) parts.added.add({.content = content, .id = *id, .special = true}, content);
}

}  // namespace

Tokenizer parse_word_pieces(std::string_view vocabulary, std::string_view name,
                            const WordPieceOptions& options) {
  TokenizerParts parts;
  int64_t id = 0;
  for_each_line(well_formed(vocabulary),
                [&](std::string_view line) { parts.vocabulary.add(without_space_at_end(line), id++, name); });
  parts.normalizers.push_back(
      bert_normalizer({.split_ideographs = options.split_ideographs,
                       .strip_accents = options.strip_accents.value_or(options.lower_case),
                       .lower_case = options.lower_case}));
  parts.pre_tokenizers.push_back(bert_pre_tokenizer());
  parts.model = word_piece_model(
      parts.vocabulary,
      {.unknown = options.unknown, .continuing = options.continuing, .longest_word = options.longest_word},
      name);
  for (const std::string& token : {std::string("[PAD]"), options.unknown, std::string("[CLS]"),
                                   std::string("[SEP]"), std::string("[MASK]")})
    add_special(parts, token);
  const std::optional<int32_t> begin = parts.vocabulary.find("[CLS]");
  const std::optional<int32_t> separator = parts.vocabulary.find("[SEP]");
  if (begin && separator) parts.surroundings = bert_template(*begin, *separator);
  parts.decoder = word_piece_decoder(options.continuing, true);
  return Tokenizer(std::move(parts));
}

Tokenizer parse_byte_pairs(std::string_view vocabulary, std::string_view merges, std::string_view name,
                           const BytePairOptions& options) {
  TokenizerParts parts;
  const Json json = parse_json(vocabulary, name);
  require(json.is_object(), ErrorCode::invalid_file, "{}: is {}, expected an object of ids by token", name,
          json.type_name());
  for (const auto& [token, id] : json.items()) {
    require(id.is_number_integer(), ErrorCode::invalid_file, "{}: the id of '{}' is no whole number", name,
            token);
    parts.vocabulary.add(token, id.get<int64_t>(), name);
  }
  Merges pairs;
  int64_t number = 0;
  for_each_line(well_formed(merges), [&](std::string_view line) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version") || line.empty()) return;
    const size_t space = line.find(' ');
    require(space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos,
            ErrorCode::invalid_file, "{}: line {} of the merges is no pair of tokens", name, number);
    pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  });
  parts.prefix_space = options.prefix_space;
  parts.pre_tokenizers.push_back(byte_level_pre_tokenizer());
  parts.model = byte_pair_model(parts.vocabulary, pairs, {}, name);
  add_special(parts, "<|endoftext|>");
  parts.decoder = byte_level_decoder();
  return Tokenizer(std::move(parts));
}

}  // namespace tessera::text
