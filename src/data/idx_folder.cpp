#include <string>

#include "tessera/base/error.h"
#include "tessera/data/dataset.h"
#include "tessera/data/idx.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

// The plain file is preferred: it needs no decompression.
fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    std::error_code ignored;
    if (fs::path path = folder / (name + ending); fs::exists(path, ignored)) return path;
  }
  fail(ErrorCode::io,
       "{}: no such file, nor with .gz; the folder must hold {{train,t10k}}-images-idx3-ubyte and "
       "{{train,t10k}}-labels-idx1-ubyte",
       (folder / name).string());
}

}  // namespace

ClassificationDataset load_idx_folder(const fs::path& folder, const IdxFolderOptions& options) {
  std::error_code ignored;
  require(fs::is_directory(folder, ignored), ErrorCode::io, "{}: no such folder", folder.string());
  const std::string prefix = options.split == Split::train ? "train" : "t10k";
  const fs::path image_path = find_file(folder, prefix + "-images-idx3-ubyte");
  const fs::path label_path = find_file(folder, prefix + "-labels-idx1-ubyte");
  const Tensor images = read_idx(image_path);
  const Tensor labels = read_idx(label_path);
  try {
    return ClassificationDataset(images, labels, options.class_names);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::invalid_file, "{} and {}: {}", image_path.string(), label_path.string(), error.what());
  }
}

std::vector<std::string> fashion_mnist_class_names() {
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
          "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
}

}  // namespace tessera::data
