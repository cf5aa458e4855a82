// Images and labels as arrays of NumPy's, under the names that published sets give them.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/data/npy.h"
#include "tessera/data/npz.h"
#include "tessera/data/registry.h"

#include "data/held_images.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

struct ArrayNames {
  const char* images;
  const char* labels;
};

// MedMNIST's names and Keras's.
constexpr std::array kTraining{ArrayNames{"train_images", "train_labels"}, ArrayNames{"x_train", "y_train"}};
constexpr std::array kTest{ArrayNames{"test_images", "test_labels"}, ArrayNames{"x_test", "y_test"}};

using ImagesAndLabels = std::pair<Tensor, Tensor>;

[[noreturn]] void fail_without_arrays(const fs::path& path, Split split) {
  const auto& names = split == Split::train ? kTraining : kTest;
  fail(ErrorCode::invalid_file, "{}: holds neither '{}' and '{}' nor '{}' and '{}'", path.string(),
       names[0].images, names[0].labels, names[1].images, names[1].labels);
}

ImagesAndLabels from_archive(const fs::path& path, Split split) {
  const auto& known = split == Split::train ? kTraining : kTest;
  // The other split's stay compressed.
  Feeds arrays = read_npz(path, [&](const std::string& name) {
    return std::ranges::any_of(
        known, [&](const ArrayNames& names) { return name == names.images || name == names.labels; });
  });
  for (const ArrayNames& names : known) {
    const auto images = arrays.find(names.images);
    const auto labels = arrays.find(names.labels);
    if (images != arrays.end() && labels != arrays.end())
      return {std::move(images->second), std::move(labels->second)};
  }
  fail_without_arrays(path, split);
}

ImagesAndLabels from_folder(const fs::path& folder, Split split) {
  for (const ArrayNames& names : split == Split::train ? kTraining : kTest) {
    const fs::path images = folder / (std::string(names.images) + ".npy");
    const fs::path labels = folder / (std::string(names.labels) + ".npy");
    std::error_code ignored;
    if (fs::exists(images, ignored) && fs::exists(labels, ignored))
      return {read_npy(images), read_npy(labels)};
  }
  fail_without_arrays(folder, split);
}

std::shared_ptr<const Dataset> open_numpy(const Options& options, const ImageSetRequest& request) {
  const fs::path path = options.text("path");
  std::error_code ignored;
  const auto [images, labels] =
      fs::is_directory(path, ignored) ? from_folder(path, request.split) : from_archive(path, request.split);
  return std::make_shared<ClassificationDataset>(held_images(images, labels, path.string()));
}

const ImageSetRegistration kRegistration(
    {.name = "npz",
     .documentation =
         "arrays of NumPy's in a file, or a folder of .npy files, named as MedMNIST or Keras names them: "
         "`train_images`, `train_labels`, `test_images` and `test_labels`, or `x_train`, `y_train`, `x_test` "
         "and `y_test`",
     .options = held_image_options(),
     .open = open_numpy,
     .check = check_path});

}  // namespace
}  // namespace tessera::data
