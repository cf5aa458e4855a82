// Tensors of one network in one safetensors file or in several, as transformers writes large ones.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tessera/data/safetensors.h"

namespace tessera::data {

// With several files an index says in which of them each tensor is: {"weight_map": {NAME: FILE}}, in JSON,
// beside them. Reading from several threads is safe.
class SafetensorsParts {
 public:
  // A safetensors file; an index, whose name ends in `.json`; or a folder that holds `model.safetensors` or
  // else `model.safetensors.index.json`. Throws Error(io) where there is none, and Error(invalid_file) naming
  // the file for a fault in it, an index that names files elsewhere, a tensor that is not in the file that
  // the index says, and one that the index does not know.
  static SafetensorsParts open(const std::filesystem::path& path);

  const std::string& name() const { return name_; }  // of the file or the index
  // Of all files, by name.
  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  // As SafetensorsFile::read().
  Tensor read(const std::string& name) const;

 private:
  void add(SafetensorsFile file);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, SafetensorsEntry> entries_;
  std::map<std::string, size_t> places_;  // of a tensor's file among files_
};

}  // namespace tessera::data
