// Networks in the files of transformers: their weights by name, and the numbers of a config.json.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tessera/base/tensor.h"
#include "tessera/nn/context.h"

namespace tessera::models {

// What tensors are called in files.
struct StoredNames {
  std::function<std::string(const std::string& stored)> own;  // what we call a tensor of a file
  std::function<std::string(const std::string& own)> stored;  // what it is called where we write it
  std::function<bool(const std::string& own)> ignored;        // what files hold that is no weight of it
  // Which of its weights files may lack; empty: none.
  std::function<bool(const std::string& own)> optional = {};
  // Tensors of some files that hold the same as another one, which this network has in their place.
  std::map<std::string, std::string> copies = {};
};

// The variables' values, in our layout, of what data::SafetensorsParts opens. Throws as it does, and
// Error(invalid_file) naming the tensor that is missing, of another shape, of no such network, or not equal
// to what it is a copy of.
std::map<std::string, Tensor> load_stored(const std::filesystem::path& path,
                                          const std::vector<nn::Variable>& variables,
                                          const StoredNames& names);
// Weights beside the variables are left out. Throws Error(invalid_argument) naming the weight that is missing
// or of another shape, Error(io).
void save_stored(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights,
                 const std::vector<nn::Variable>& variables, const StoredNames& names);

// A config.json. What is null counts as left out.
class ConfigFile {
 public:
  // Throws Error(io), Error(invalid_file) where it is no JSON object.
  explicit ConfigFile(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  // An object in it. Throws Error(invalid_file) where it is none.
  ConfigFile part(const char* key) const;
  bool has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  // Null where there is none.
  nlohmann::json value(const char* key) const;
  // Throw Error(invalid_file) naming the key: where it is missing or no whole number of at least `least`;
  // and, of what may be left out and stays as it is, where it is no number or boolean.
  void read(const char* key, int64_t& value, int64_t least = 1) const;
  void read(const char* key, double& value) const;
  void read_if_there(const char* key, int64_t& value, int64_t least = 1) const;
  void read_if_there(const char* key, double& value) const;
  void read_if_there(const char* key, bool& value) const;
  // Keys that may be left out, and the one value that is known of each. Throws Error(unsupported) for
  // another.
  void expect(const nlohmann::json& known) const;

 private:
  ConfigFile(std::string name, nlohmann::json json);

  std::string name_;
  nlohmann::json json_;
};

// Throws Error(io).
void write_config(const std::filesystem::path& path, const nlohmann::json& json);

}  // namespace tessera::models
