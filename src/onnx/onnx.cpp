#include "tessera/onnx/onnx.h"

#include "tessera/base/error.h"
#include "tessera/base/file.h"

#include "onnx/importer.h"

namespace tessera::onnx {
namespace {

constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;  // of one message

template <typename Message>
Message parse_message(std::span<const std::byte> bytes, const std::string& name) {
  Message message;
  require(bytes.size() <= kMostBytes && message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
          ErrorCode::invalid_file, "{}: no {} of the ONNX format, or truncated", name, message.GetTypeName());
  return message;
}

}  // namespace

std::shared_ptr<const program::Module> parse(std::span<const std::byte> bytes, const std::string& name,
                                             const std::filesystem::path& folder) {
  const auto model = parse_message<::onnx::ModelProto>(bytes, name);
  require(model.has_graph(), ErrorCode::invalid_file, "{}: the model holds no graph", name);
  const ExternalFolder external(folder);
  try {
    return Importer(model, external).import(name);
  } catch (const Error& error) {
    // What cannot be counted in 64 bits or lies beyond all memory is a fault of the file.
    const ErrorCode code =
        error.code() == ErrorCode::invalid_argument ? ErrorCode::invalid_file : error.code();
    throw Error(code, fmt::format("{}: {}", name, error.what()));
  }
}

std::shared_ptr<const program::Module> load(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::filesystem::path folder = path.parent_path();
  return parse(file.bytes(), path.string(), folder.empty() ? "." : folder);
}

program::Item load_value(const std::filesystem::path& path, ValueKind kind) {
  const std::vector<std::byte> bytes = read_file(path, kMostBytes);
  switch (kind) {
    case ValueKind::sequence:
      return item_of(parse_message<::onnx::SequenceProto>(bytes, path.string()));
    case ValueKind::optional:
      return item_of(parse_message<::onnx::OptionalProto>(bytes, path.string()));
    default:
      return item_of(parse_message<::onnx::TensorProto>(bytes, path.string()));
  }
}

}  // namespace tessera::onnx
