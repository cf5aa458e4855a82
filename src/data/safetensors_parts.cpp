#include "tessera/data/safetensors_parts.h"

#include <set>

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/file.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

fs::path file_in(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* name : {kFile, kIndex})
    if (fs::exists(path / name, ignored)) return path / name;
  fail(ErrorCode::io, "{}: neither '{}' nor '{}' is there", path.string(), kFile, kIndex);
}

// Tensor -> file.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const nlohmann::json json = nlohmann::json::parse(read_text_file(path), nullptr, false);
  const bool is_index = json.is_object() && json.contains("weight_map") &&
                        json.at("weight_map").is_object() && !json.at("weight_map").empty();
  require(is_index, ErrorCode::invalid_file, "{}: no index of tensors: there is no 'weight_map'",
          path.string());
  std::map<std::string, std::string> result;
  for (const auto& [tensor, file] : json.at("weight_map").items()) {
    require(file.is_string(), ErrorCode::invalid_file, "{}: '{}' is in {}, expected a file's name",
            path.string(), tensor, file.dump());
    const auto& name = file.get_ref<const std::string&>();
    require(!name.empty() && name != ".." && fs::path(name).filename() == name, ErrorCode::invalid_file,
            "{}: '{}' is in '{}', expected a file beside the index", path.string(), tensor, name);
    result.emplace(tensor, name);
  }
  return result;
}

}  // namespace

SafetensorsParts SafetensorsParts::open(const fs::path& path) {
  const fs::path file = file_in(path);
  SafetensorsParts parts;
  parts.name_ = file.string();
  if (file.extension() != ".json") {
    parts.add(SafetensorsFile::open(file));
    return parts;
  }
  const std::map<std::string, std::string> index = read_index(file);
  std::set<std::string> names;
  for (const auto& [tensor, name] : index) names.insert(name);
  for (const std::string& name : names) {
    parts.add(SafetensorsFile::open(file.parent_path() / name));
    for (const auto& [tensor, entry] : parts.files_.back().entries()) {
      const auto known = index.find(tensor);
      require(known != index.end() && known->second == name, ErrorCode::invalid_file,
              "{}: '{}' is in '{}', which the index does not say", parts.name_, tensor, name);
    }
  }
  for (const auto& [tensor, name] : index) {
    require(parts.entries_.contains(tensor), ErrorCode::invalid_file, "{}: '{}' is not in '{}'", parts.name_,
            tensor, name);
  }
  return parts;
}

void SafetensorsParts::add(SafetensorsFile file) {
  for (const auto& [tensor, entry] : file.entries()) {
    entries_.emplace(tensor, entry);
    places_.emplace(tensor, files_.size());
  }
  files_.push_back(std::move(file));
}

Tensor SafetensorsParts::read(const std::string& name) const {
  const auto place = places_.find(name);
  return files_.at(place == places_.end() ? 0 : place->second).read(name);
}

}  // namespace tessera::data
