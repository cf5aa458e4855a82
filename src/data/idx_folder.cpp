#include <algorithm>
#include <string>

#include "tessera/base/error.h"
#include "tessera/data/idx.h"
#include "tessera/data/registry.h"

#include "data/held_images.h"

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
  return held_images(images, labels, fmt::format("{} and {}", image_path.string(), label_path.string()),
                     options.class_names);
}

std::vector<std::string> fashion_mnist_class_names() {
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
          "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
}

namespace {

// The files of MNIST, Fashion-MNIST and others are alike, and hold no names; the labels tell them apart.
bool is_fashion_mnist(const ClassificationDataset& dataset, Split split) {
  constexpr int32_t kTrain[] = {9, 0, 0, 3, 0, 2, 7, 2, 5, 5, 0, 9, 5, 5, 7, 9, 1, 0, 6, 4, 3, 1, 4, 8};
  constexpr int32_t kTest[] = {9, 2, 1, 1, 6, 1, 4, 6, 5, 7, 4, 5, 7, 3, 4, 1, 2, 4, 8, 0, 2, 5, 7, 9};
  const bool training = split == Split::train;
  const std::span<const int32_t> first = training ? kTrain : kTest;
  const auto labels = dataset.labels().data<int32_t>();
  return dataset.size() == (training ? 60000 : 10000) && dataset.class_count() == 10 &&
         std::equal(first.begin(), first.end(), labels.begin());
}

std::shared_ptr<const Dataset> open_idx_folder(const Options& options, const ImageSetRequest& request) {
  ClassificationDataset loaded = load_idx_folder(options.text("path"), {.split = request.split});
  if (is_fashion_mnist(loaded, request.split))
    loaded = {loaded.images(), loaded.labels(), fashion_mnist_class_names()};
  return std::make_shared<ClassificationDataset>(std::move(loaded));
}

const ImageSetRegistration kRegistration(
    {.name = "idx",
     .documentation = "the four files of MNIST and its successors, plain or gzip",
     .options = held_image_options(),
     .open = open_idx_folder,
     .check = check_path});

}  // namespace

}  // namespace tessera::data
