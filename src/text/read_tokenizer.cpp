// Which files are which tokenizer.
#include <algorithm>
#include <array>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/text/tokenizer.h"

#include "text/json.h"

namespace tessera::text {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestFile = uint64_t{1} << 28;
constexpr const char* kSettings = "tokenizer_config.json";

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
  const fs::path path = folder / kSettings;
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

using Paths = std::vector<fs::path>;

// With the settings beside them, if any.
Paths with_settings(Paths files) {
  const fs::path settings = files.front().parent_path() / kSettings;
  if (is_file(settings)) files.push_back(settings);
  return files;
}

std::optional<Paths> byte_pairs_in(const fs::path& folder) {
  for (const auto& [vocabulary, merges] : kBytePairFiles) {
    if (is_file(folder / vocabulary) && is_file(folder / merges))
      return with_settings({folder / vocabulary, folder / merges});
  }
  return std::nullopt;
}

std::optional<fs::path> sentence_piece_in(const fs::path& folder) {
  std::optional<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".model" && (!found || entry->path() < *found)) found = entry->path();
  }
  return found;
}

Paths files_in(const fs::path& folder) {
  if (is_file(folder / "tokenizer.json")) return {folder / "tokenizer.json"};
  if (is_file(folder / "vocab.txt")) return with_settings({folder / "vocab.txt"});
  if (std::optional<Paths> found = byte_pairs_in(folder)) return *found;
  if (const std::optional<fs::path> model = sentence_piece_in(folder)) return {*model};
  fail(ErrorCode::io, "{}: holds no tokenizer.json, vocab.txt, vocab.json with merges.txt, or .model",
       folder.string());
}

Paths files_of(const fs::path& path) {
  const std::string extension = path.extension().string();
  for (const auto& [vocabulary, merges] : kBytePairFiles) {
    if (path.filename() != vocabulary && path.filename() != merges) continue;
    const std::optional<Paths> found = byte_pairs_in(path.parent_path());
    require(found.has_value(), ErrorCode::io,
            "{}: a byte-pair tokenizer is both {} and {}, of which one is missing", path.string(), vocabulary,
            merges);
    return *found;
  }
  if (extension == ".json" || extension == ".model") return {path};
  if (extension == ".txt") return with_settings({path});
  fail(ErrorCode::invalid_argument,
       "{}: a tokenizer is a tokenizer.json, a vocab.txt, a vocab.json with a merges.txt, a .model, or a "
       "folder of them",
       path.string());
}

bool is_byte_pair_file(const fs::path& path) {
  return std::any_of(kBytePairFiles.begin(), kBytePairFiles.end(),
                     [&](const auto& names) { return path.filename() == names.first; });
}

}  // namespace

std::vector<fs::path> tokenizer_files(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? files_in(path) : files_of(path);
}

Tokenizer read_tokenizer(const fs::path& path) {
  const Paths files = tokenizer_files(path);
  const fs::path& first = files.front();
  const std::string name = first.string();
  if (is_byte_pair_file(first))
    return parse_byte_pairs(contents(first), contents(files[1]), name,
                            settings_of(first.parent_path()).byte_pairs);
  if (first.extension() == ".txt")
    return parse_word_pieces(contents(first), name, settings_of(first.parent_path()).word_pieces);
  return first.extension() == ".model" ? parse_sentence_piece(contents(first), name)
                                       : parse_tokenizer_json(contents(first), name);
}

}  // namespace tessera::text
