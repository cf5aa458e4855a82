#include <limits>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/data/token_shards.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kList = "tokens.json";
constexpr uint64_t kLargestList = uint64_t{1} << 26;
constexpr int64_t kVersion = 1;

// Reads the list's numbers, each within its bounds.
class ListReader {
 public:
  explicit ListReader(const fs::path& path) : name_(path.string()) {
    json_ = Json::parse(read_text_file(path, kLargestList), nullptr, false);
    require(json_.is_object(), ErrorCode::invalid_file, "{}: no object of JSON", name_);
    require(integer(json_, "version", 0) == kVersion, ErrorCode::invalid_file,
            "{}: another version, expected {}", name_, kVersion);
  }

  TokenSetHeader header() const {
    constexpr int64_t kIds = std::numeric_limits<int32_t>::max();
    TokenSetHeader header{
        .vocabulary = integer(json_, "vocabulary", 1, kIds),
        .tokenizer = static_cast<uint64_t>(integer(json_, "tokenizer", std::numeric_limits<int64_t>::min())),
        .fields = integer(json_, "fields", 1, 2)};
    const auto id = [&](const char* key) -> std::optional<int32_t> {
      if (!json_.contains(key)) return std::nullopt;
      return static_cast<int32_t>(integer(json_, key, 0, header.vocabulary - 1));
    };
    header.begin = id("begin");
    header.separator = id("separator");
    header.padding = id("padding");
    header.mask = id("mask");
    return header;
  }

  std::vector<TokenSetEntry> shards() const {
    const auto list = json_.find("shards");
    require(list != json_.end() && list->is_array() && !list->empty(), ErrorCode::invalid_file,
            "{}: lists no shards", name_);
    std::vector<TokenSetEntry> shards;
    for (const Json& entry : *list) {
      const auto file = entry.is_object() ? entry.find("file") : entry.end();
      require(entry.is_object() && file != entry.end() && file->is_string(), ErrorCode::invalid_file,
              "{}: a shard has no file", name_);
      shards.push_back(
          {file->get<std::string>(), integer(entry, "documents", 0), integer(entry, "tokens", 0)});
      const fs::path path = shards.back().file;
      require(path == path.filename() && !path.empty() && path != "..", ErrorCode::invalid_file,
              "{}: the shard '{}' is no file of this folder", name_, path.string());
    }
    return shards;
  }

 private:
  int64_t integer(const Json& object, const char* key, int64_t low,
                  int64_t high = std::numeric_limits<int64_t>::max()) const {
    const auto found = object.find(key);
    require(found != object.end() && found->is_number_integer(), ErrorCode::invalid_file,
            "{}: '{}' is no whole number", name_, key);
    const auto value = found->get<int64_t>();
    require(value >= low && value <= high, ErrorCode::invalid_file, "{}: '{}' is {}, expected {} to {}",
            name_, key, value, low, high);
    return value;
  }

  std::string name_;
  Json json_;
};

}  // namespace

TokenSet::TokenSet(const fs::path& folder) {
  std::error_code ignored;
  require(!fs::is_directory(folder, ignored) || fs::exists(folder / kList, ignored), ErrorCode::io,
          "{}: holds no {}; 'tessera data tokenize' writes it when all is done", folder.string(), kList);
  const ListReader list(folder / kList);
  header_ = list.header();
  for (const TokenSetEntry& entry : list.shards()) {
    const TokenShard& shard = shards_.emplace_back(folder / entry.file);
    const bool same = shard.documents() == entry.documents && shard.tokens() == entry.tokens &&
                      shard.vocabulary() == header_.vocabulary && shard.tokenizer() == header_.tokenizer &&
                      shard.fields() == header_.fields;
    require(same, ErrorCode::invalid_file,
            "{}: is not the shard that {} lists; tokenize again into another folder",
            (folder / entry.file).string(), kList);
  }
}

int64_t TokenSet::documents() const {
  int64_t documents = 0;
  for (const TokenShard& shard : shards_) documents += shard.documents();
  return documents;
}

int64_t TokenSet::tokens() const {
  int64_t tokens = 0;
  for (const TokenShard& shard : shards_) tokens += shard.tokens();
  return tokens;
}

void TokenSet::verify() const {
  for (const TokenShard& shard : shards_) shard.verify();
}

void write_token_set(const fs::path& folder, const TokenSetHeader& header,
                     const std::vector<TokenSetEntry>& shards) {
  Json json = {{"version", kVersion},
               {"vocabulary", header.vocabulary},
               {"tokenizer", static_cast<int64_t>(header.tokenizer)},
               {"fields", header.fields}};
  const auto set = [&](const char* key, std::optional<int32_t> id) {
    if (id) json[key] = *id;
  };
  set("begin", header.begin);
  set("separator", header.separator);
  set("padding", header.padding);
  set("mask", header.mask);
  json["shards"] = Json::array();
  for (const TokenSetEntry& shard : shards)
    json["shards"].push_back(
        {{"file", shard.file}, {"documents", shard.documents}, {"tokens", shard.tokens}});
  write_file(folder / kList, json.dump(1) + "\n");
}

}  // namespace tessera::data
