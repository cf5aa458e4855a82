// Networks that users have in files, where commands otherwise take one by name. Each format registers itself,
// in its own file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tessera/base/registry.h"
#include "tessera/graph/graph.h"

namespace tessera::cli {

struct NetworkFile {
  std::unique_ptr<Graph> graph;           // for inference, of static shapes
  std::map<std::string, Tensor> weights;  // of its variables; one that lacks some is planned only
};

// What is left open by the file's shapes.
struct OpenSizes {
  int64_t batch = 1;      // of leading extents that nobody says
  SymbolBindings others;  // by name
};

struct NetworkFormat {
  std::string name;  // what its files end with: ".onnx"
  std::function<NetworkFile(const std::string& path, const OpenSizes& sizes)> read;
};

Registry<NetworkFormat>& network_formats();

struct NetworkFormatRegistration {
  explicit NetworkFormatRegistration(NetworkFormat format) { network_formats().add(std::move(format)); }
};

// By the end of its name; null for what is no file of a known format.
const NetworkFormat* network_format_of(const std::string& model);

}  // namespace tessera::cli
