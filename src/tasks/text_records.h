// Texts and what goes with them, a record each, out of files of several forms.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tessera::tasks {

// The named fields of all records, [fields][records]. What a file is, its name says:
//   .csv, .tsv     the first line names the fields
//   .parquet       columns are the fields, null is an empty text
//   .jsonl, .json  an object a line, whose fields are texts, whole numbers, true or false
//   any other      a text a line, where only one field is asked for
// Empty lines are none. Throws Error(io); Error(invalid_argument) naming a column that is not there or a file
// whose lines have no such fields, and Error(invalid_file) naming the line that is broken.
std::vector<std::vector<std::string>> read_text_fields(const std::filesystem::path& path,
                                                       const std::vector<std::string>& fields);

bool is_json_file(const std::filesystem::path& path);
// Calls take(object, "FILE: line 3") for each line that is not empty. Throws Error(io), Error(invalid_file)
// where a line is no object.
void visit_json_lines(const std::filesystem::path& path,
                      const std::function<void(const nlohmann::json& json, const std::string& where)>& take);
// A field of such an object as a text. Throws Error(invalid_file) where there is none.
std::string json_text(const nlohmann::json& json, const std::string& field, const std::string& where);
// The lines of a file without what ends them.
std::vector<std::string> read_lines(const std::filesystem::path& path);

}  // namespace tessera::tasks
