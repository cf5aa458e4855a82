#include "data/held_images.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/data/registry.h"

namespace tessera::data {

std::vector<Option> held_image_options() {
  std::vector<Option> options = image_count_options("all of them");
  options.insert(options.begin(), path_option("Folder of the data"));
  return options;
}

ClassificationDataset held_images(const Tensor& images, const Tensor& labels, const std::string& files,
                                  std::vector<std::string> class_names) {
  try {
    return ClassificationDataset(images, labels, std::move(class_names));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::invalid_file, "{}: {}", files, error.what());
  }
}

}  // namespace tessera::data
