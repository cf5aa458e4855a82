// Networks from images to classes that users have in files. Each format registers itself, where its reader
// is.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tessera/base/registry.h"
#include "tessera/models/model.h"

namespace tessera::models {

struct NetworkFileFormat {
  std::string name;  // what its files end with: ".onnx"
  // A network of that many classes for such images, which starts from the weights of the file.
  std::function<Model(const std::filesystem::path& path, const ClassifierOptions& options)> read;
};

Registry<NetworkFileFormat>& network_file_formats();

struct NetworkFileFormatRegistration {
  explicit NetworkFileFormatRegistration(NetworkFileFormat format) {
    network_file_formats().add(std::move(format));
  }
};

// Throws Error(unsupported) with the ends that are known when no format is read from files that end so, and
// naming the file, Error(io), Error(invalid_file), and Error(unsupported) for what is not trained or does not
// fit the images and classes.
Model read_network(const std::filesystem::path& path, const ClassifierOptions& options);

}  // namespace tessera::models
