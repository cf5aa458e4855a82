// Which files are which tokenizer.
#include <array>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

#include "text/json.h"

namespace tessera::text {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestFile = uint64_t{1} << 28;

std::string contents(const fs::path& path) {
  return read_text_file(path, kLargestFile);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// What the settings beside a vocabulary say.
struct Settings {
  WordPieceOptions word_pieces;
  BytePairOptions byte_pairs;
};

Settings settings_of(const fs::path& folder) {
  Settings settings;
  const fs::path path = folder / "tokenizer_config.json";
  if (!is_file(path)) return settings;
  const std::string name = path.string();
  const Json json = parse_json(contents(path), name);
  const JsonObject file(json, "the file", name);
  settings.word_pieces.lower_case = file.boolean("do_lower_case", true);
  if (file.find("strip_accents") != nullptr)
    settings.word_pieces.strip_accents = file.boolean("strip_accents", true);
  settings.word_pieces.split_ideographs = file.boolean("tokenize_chinese_chars", true);
  settings.byte_pairs.prefix_space = file.boolean("add_prefix_space", false);
  return settings;
}

// Names of the two files of a byte-pair tokenizer, today's and those of GPT-2's release.
constexpr std::array<std::pair<const char*, const char*>, 2> kBytePairFiles = {
    {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}};

std::optional<Tokenizer> byte_pairs_in(const fs::path& folder) {
  for (const auto& [vocabulary, merges] : kBytePairFiles) {
    if (is_file(folder / vocabulary) && is_file(folder / merges))
      return parse_byte_pairs(contents(folder / vocabulary), contents(folder / merges),
                              (folder / vocabulary).string(), settings_of(folder).byte_pairs);
  }
  return std::nullopt;
}

Tokenizer read_file_of(const fs::path& path) {
  const std::string name = path.string();
  const std::string extension = path.extension().string();
  const fs::path folder = path.parent_path();
  for (const auto& [vocabulary, merges] : kBytePairFiles) {
    if (path.filename() != vocabulary && path.filename() != merges) continue;
    std::optional<Tokenizer> found = byte_pairs_in(folder);
    require(found.has_value(), ErrorCode::io,
            "{}: a byte-pair tokenizer is both {} and {}, and the other is not there", name, vocabulary,
            merges);
    return *found;
  }
  if (extension == ".json") return parse_tokenizer_json(contents(path), name);
  if (extension == ".model") return parse_sentence_piece(contents(path), name);
  if (extension == ".txt") return parse_word_pieces(contents(path), name, settings_of(folder).word_pieces);
  fail(ErrorCode::invalid_argument,
       "{}: a tokenizer is a tokenizer.json, a vocab.txt, a vocab.json with a merges.txt, a .model, or a "
       "folder of them",
       name);
}

std::optional<fs::path> sentence_piece_in(const fs::path& folder) {
  std::optional<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".model" && (!found || entry->path() < *found)) found = entry->path();
  }
  return found;
}

}  // namespace

Tokenizer read_tokenizer(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return read_file_of(path);
  for (const char* name : {"tokenizer.json", "vocab.txt"}) {
    if (is_file(path / name)) return read_file_of(path / name);
  }
  if (std::optional<Tokenizer> found = byte_pairs_in(path)) return *found;
  if (const std::optional<fs::path> model = sentence_piece_in(path)) return read_file_of(*model);
  fail(ErrorCode::io, "{}: holds no tokenizer.json, vocab.txt, vocab.json with merges.txt, or .model",
       path.string());
}

}  // namespace tessera::text
