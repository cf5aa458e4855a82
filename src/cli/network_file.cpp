#include "cli/network_file.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"

namespace tessera::cli {
namespace {

NetworkFile read_graph(const std::string& path, const OpenSizes& sizes) {
  require(sizes.others.empty(), ErrorCode::invalid_argument, "--size: the shapes of '{}' are written in it",
          path);
  return {.graph = parse_graph(read_text_file(path), path), .weights = {}};
}

const NetworkFormatRegistration kGraphText({.name = ".graph", .read = read_graph});

}  // namespace

Registry<NetworkFormat>& network_formats() {
  static Registry<NetworkFormat> formats("format of networks");
  return formats;
}

const NetworkFormat* network_format_of(const std::string& model) {
  for (const NetworkFormat* format : network_formats().all()) {
    if (model.ends_with(format->name)) return format;
  }
  return nullptr;
}

}  // namespace tessera::cli
