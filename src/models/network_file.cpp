#include "tessera/models/network_file.h"

#include "tessera/base/error.h"

namespace tessera::models {

Registry<NetworkFileFormat>& network_file_formats() {
  static Registry<NetworkFileFormat> formats("format of networks in files");
  return formats;
}

Model read_network(const std::filesystem::path& path, const ClassifierOptions& options) {
  std::string known;
  for (const NetworkFileFormat* format : network_file_formats().all()) {
    if (path.string().ends_with(format->name)) return format->read(path, options);
    known += (known.empty() ? "" : ", ") + format->name;
  }
  require(!known.empty(), ErrorCode::unsupported,
          "{}: this program reads no networks in files; it was built without ONNX (tools/setup onnx)",
          path.string());
  fail(ErrorCode::unsupported, "{}: networks are read from files that end with {}", path.string(), known);
}

}  // namespace tessera::models
