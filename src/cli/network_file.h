// Networks that users have in files, where commands otherwise take one by name. Each format registers itself,
// in its own file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/registry.h"
#include "tessera/graph/graph.h"

namespace tessera::cli {

struct NetworkFile {
  std::unique_ptr<Graph> graph;           // for inference, of static shapes
  std::map<std::string, Tensor> weights;  // of its variables; one that lacks some is planned only
};

// Of whole numbers among synthetic inputs: 0 and 1 are indices into whatever a network looks up.
inline constexpr int64_t kSyntheticLimit = 2;

// What is left open by the file's shapes.
struct OpenSizes {
  int64_t batch = 1;      // of leading extents that nobody says
  SymbolBindings others;  // by name
};

// One of the graphs of a file that is no single one, or what stands between two of them.
struct NetworkPart {
  std::string place;  // "'main', instructions 3 to 7"
  std::string why;    // it ended there
  std::string done;   // what is there in place of a graph: "on the host"; "" of a graph
  int64_t runs = 0;
  std::unique_ptr<Graph> graph;
};

struct NetworkFormat {
  std::string name;  // what its files end with: ".onnx"
  std::function<NetworkFile(const std::string& path, const OpenSizes& sizes)> read;
  // Of a file that is no single graph at these sizes, or whose inputs have these contents, its parts in the
  // order in which they first run. Inputs that are not given are synthetic. None: it is a single graph.
  // Empty: such files always are.
  std::function<std::vector<NetworkPart>(const std::string& path, const OpenSizes& sizes,
                                         const std::map<std::string, Tensor>& contents)>
      parts = {};
};

Registry<NetworkFormat>& network_formats();

struct NetworkFormatRegistration {
  explicit NetworkFormatRegistration(NetworkFormat format) { network_formats().add(std::move(format)); }
};

// By the end of its name; null for what is no file of a known format.
const NetworkFormat* network_format_of(const std::string& model);

}  // namespace tessera::cli
