// Values of the format's messages as items.
#pragma once

#include <filesystem>

#include <onnx/onnx-data.pb.h>
#include <onnx/onnx-ml.pb.h>

#include "tessera/program/item.h"

namespace tessera::onnx {

// What lies beside a model.
class ExternalFolder {
 public:
  ExternalFolder() = default;  // none: external data is refused
  explicit ExternalFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Fills `target` from a file of the folder. Throws Error(invalid_file) when the path leaves the folder, or
  // the file has too few bytes.
  void read(const std::string& location, uint64_t offset, std::span<std::byte> target) const;
  // Throws as read(), of so many bytes.
  void check(const std::string& location, uint64_t offset, uint64_t bytes) const;

 private:
  std::filesystem::path resolve(const std::string& location) const;

  std::filesystem::path folder_;
};

// Throw Error(invalid_file) naming the tensor when its data does not fit its type and shape.
program::Item item_of(const ::onnx::TensorProto& proto, const ExternalFolder& folder = {});
program::Item item_of(const ::onnx::SparseTensorProto& proto);
program::Item item_of(const ::onnx::SequenceProto& proto, int depth = 0);
program::Item item_of(const ::onnx::OptionalProto& proto, int depth = 0);

}  // namespace tessera::onnx
