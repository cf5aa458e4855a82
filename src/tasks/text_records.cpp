#include "tasks/text_records.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/csv.h"
#include "tessera/data/parquet.h"

namespace tessera::tasks {
namespace {

using Fields = std::vector<std::vector<std::string>>;

Fields fields_of(const std::vector<data::TextColumn>& columns) {
  Fields fields;
  for (const data::TextColumn& column : columns) {
    std::vector<std::string>& texts = fields.emplace_back();
    for (const int32_t code : column.codes) texts.push_back(column.values[static_cast<size_t>(code)]);
  }
  return fields;
}

Fields read_objects(const std::filesystem::path& path, const std::vector<std::string>& names) {
  Fields fields(names.size());
  visit_json_lines(path, [&](const nlohmann::json& json, const std::string& where) {
    for (size_t i = 0; i < names.size(); ++i) fields[i].push_back(json_text(json, names[i], where));
  });
  return fields;
}

}  // namespace

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    at = end + 1;
  }
  return lines;
}

bool is_json_file(const std::filesystem::path& path) {
  return path.extension() == ".jsonl" || path.extension() == ".json";
}

void visit_json_lines(const std::filesystem::path& path,
                      const std::function<void(const nlohmann::json& json, const std::string& where)>& take) {
  int64_t number = 0;
  for (const std::string& line : read_lines(path)) {
    ++number;
    if (line.empty()) continue;
    const std::string where = fmt::format("{}: line {}", path.string(), number);
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    require(json.is_object(), ErrorCode::invalid_file, "{} is no JSON object", where);
    take(json, where);
  }
}

std::string json_text(const nlohmann::json& json, const std::string& field, const std::string& where) {
  const auto found = json.find(field);
  require(found != json.end(), ErrorCode::invalid_file, "{} has no '{}'", where, field);
  if (found->is_string()) return found->get<std::string>();
  require(found->is_number_integer() || found->is_boolean(), ErrorCode::invalid_file,
          "{}: '{}' is {}, expected a text", where, field, found->dump());
  return found->dump();
}

std::vector<std::vector<std::string>> read_text_fields(const std::filesystem::path& path,
                                                       const std::vector<std::string>& fields) {
  if (is_json_file(path)) return read_objects(path, fields);
  if (path.extension() == ".csv") return fields_of(data::read_csv(path, fields));
  if (path.extension() == ".tsv") return fields_of(data::read_csv(path, fields, '\t'));
  if (path.extension() == ".parquet") return fields_of(data::read_parquet(path, fields));
  require(fields.size() == 1, ErrorCode::invalid_argument,
          "{}: lines of text have no '{}'; expected a .jsonl, .csv, .tsv or .parquet", path.string(),
          fields.back());
  std::vector<std::string> lines = read_lines(path);
  std::erase(lines, "");
  return {std::move(lines)};
}

}  // namespace tessera::tasks
