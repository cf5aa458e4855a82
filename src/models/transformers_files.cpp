#include "models/transformers_files.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"
#include "tessera/data/safetensors_parts.h"

namespace tessera::models {

std::map<std::string, Tensor> load_stored(const std::filesystem::path& path,
                                          const std::vector<nn::Variable>& variables,
                                          const StoredNames& names) {
  const data::SafetensorsParts file = data::SafetensorsParts::open(path);
  std::map<std::string, std::string> stored;  // our name -> that of the file
  for (const auto& [name, entry] : file.entries()) {
    const std::string own = names.own(name);
    if (names.ignored(own)) continue;
    const auto [place, is_new] = stored.emplace(own, name);
    require(is_new, ErrorCode::invalid_file, "{}: '{}' and '{}' are one tensor", file.name(), place->second,
            name);
  }
  std::map<std::string, Tensor> weights;
  for (const nn::Variable& variable : variables) {
    const auto found = stored.find(variable.name);
    if (found == stored.end() && names.optional && names.optional(variable.name)) continue;
    require(found != stored.end(), ErrorCode::invalid_file, "{}: '{}' is missing", file.name(),
            names.stored(variable.name));
    const Shape& shape = file.entries().at(found->second).shape;
    const Shape& expected = variable.file_shape.empty() ? variable.shape : variable.file_shape;
    require(shape == expected, ErrorCode::invalid_file, "{}: '{}' has the shape {}, expected {}", file.name(),
            found->second, to_string(shape), to_string(expected));
    weights.emplace(variable.name, nn::from_file_layout(variable, file.read(found->second)));
    stored.erase(found);
  }
  for (const auto& [name, in_file] : stored) {
    const auto original = names.copies.find(name);
    require(original != names.copies.end() && weights.contains(original->second), ErrorCode::invalid_file,
            "{}: '{}' is no tensor of such a network", file.name(), in_file);
    require(file.read(in_file).cast(DataType::fp32).identical(weights.at(original->second)),
            ErrorCode::invalid_file, "{}: '{}' is not equal to '{}', which this network has in its place",
            file.name(), in_file, original->second);
  }
  return weights;
}

void save_stored(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights,
                 const std::vector<nn::Variable>& variables, const StoredNames& names) {
  std::map<std::string, Tensor> tensors;
  for (const nn::Variable& variable : variables) {
    const auto found = weights.find(variable.name);
    require(found != weights.end(), ErrorCode::invalid_argument, "weight '{}' is missing", variable.name);
    require(found->second.shape() == variable.shape, ErrorCode::invalid_argument,
            "weight '{}' has the shape {}, expected {}", variable.name, to_string(found->second.shape()),
            to_string(variable.shape));
    tensors.emplace(names.stored(variable.name), nn::to_file_layout(variable, found->second));
  }
  data::write_safetensors(path, tensors, {{"format", "pt"}});
}

ConfigFile::ConfigFile(const std::filesystem::path& path)
    : ConfigFile(path.string(), nlohmann::json::parse(read_text_file(path), nullptr, false)) {}

ConfigFile::ConfigFile(std::string name, nlohmann::json json)
    : name_(std::move(name)), json_(std::move(json)) {
  require(json_.is_object(), ErrorCode::invalid_file, "{}: no JSON object", name_);
}

ConfigFile ConfigFile::part(const char* key) const {
  return {fmt::format("{}: '{}'", name_, key), value(key)};
}

nlohmann::json ConfigFile::value(const char* key) const {
  return json_.contains(key) ? json_.at(key) : nlohmann::json();
}

void ConfigFile::read(const char* key, int64_t& value, int64_t least) const {
  require(has(key) && json_.at(key).is_number_integer() && json_.at(key).get<int64_t>() >= least,
          ErrorCode::invalid_file, "{}: '{}' is {}, expected a whole number", name_, key,
          this->value(key).dump());
  value = json_.at(key).get<int64_t>();
}

void ConfigFile::read_if_there(const char* key, int64_t& value, int64_t least) const {
  if (has(key)) read(key, value, least);
}

void ConfigFile::read_if_there(const char* key, double& value) const {
  if (has(key)) read(key, value);
}

void ConfigFile::read(const char* key, double& value) const {
  require(has(key) && json_.at(key).is_number(), ErrorCode::invalid_file, "{}: '{}' is {}, expected a number",
          name_, key, this->value(key).dump());
  value = json_.at(key).get<double>();
}

void ConfigFile::read_if_there(const char* key, bool& value) const {
  if (!has(key)) return;
  require(json_.at(key).is_boolean(), ErrorCode::invalid_file, "{}: '{}' is {}, expected true or false",
          name_, key, json_.at(key).dump());
  value = json_.at(key).get<bool>();
}

void ConfigFile::expect(const nlohmann::json& known) const {
  for (const auto& [key, value] : known.items()) {
    require(!json_.contains(key) || json_.at(key) == value, ErrorCode::unsupported,
            "{}: '{}' is {}, only {} is supported", name_, key, json_.value(key, nlohmann::json()).dump(),
            value.dump());
  }
}

void write_config(const std::filesystem::path& path, const nlohmann::json& json) {
  AtomicFile file(path);
  file.write(json.dump(2) + "\n");
  file.commit();
}

}  // namespace tessera::models
