// Images and labels as arrays of NumPy's, under the names that published sets give them.
#include <array>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/data/npy.h"
#include "tessera/data/npz.h"
#include "tessera/data/registry.h"

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
  Feeds arrays = read_npz(path);
  for (const ArrayNames& names : split == Split::train ? kTraining : kTest) {
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

// Integers of any type, [N] or [N, 1], as [N] of int32.
Tensor as_labels(const Tensor& array, const std::string& name) {
  const Shape& shape = array.shape();
  const bool is_list = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
  require(is_list && is_integer(array.data_type()), ErrorCode::invalid_file,
          "{}: the labels are {}{}, expected integers of shape [N] or [N, 1]", name,
          to_string(array.data_type()), to_string(shape));
  const Tensor wide = array.cast(DataType::int64);
  for (const int64_t label : wide.data<int64_t>()) {
    require(label >= 0 && label <= std::numeric_limits<int32_t>::max(), ErrorCode::invalid_file,
            "{}: a label is {}, expected the number of a class", name, label);
  }
  return wide.cast(DataType::int32).reshape({shape[0]});
}

std::shared_ptr<const Dataset> open_numpy(const Options& options, const ImageSetRequest& request) {
  const fs::path path = options.text("path");
  std::error_code ignored;
  const auto [images, labels] =
      fs::is_directory(path, ignored) ? from_folder(path, request.split) : from_archive(path, request.split);
  try {
    return std::make_shared<ClassificationDataset>(images, as_labels(labels, path.string()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::invalid_file, "{}: {}", path.string(), error.what());
  }
}

std::vector<Option> numpy_options() {
  std::vector<Option> options = image_count_options("all of them");
  options.insert(options.begin(), image_path_option("The file, or a folder of .npy files"));
  return options;
}

const ImageSetRegistration kRegistration(
    {.name = "npz",
     .documentation =
         "arrays of NumPy's in a file, or a folder of .npy files, named as MedMNIST or Keras names them: "
         "`train_images`, `train_labels`, `test_images` and `test_labels`, or `x_train`, `y_train`, `x_test` "
         "and `y_test`",
     .options = numpy_options(),
     .open = open_numpy,
     .check = check_image_path});

}  // namespace
}  // namespace tessera::data
