// What kinds of images share whose pixels and labels are read whole.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/data/dataset.h"

namespace tessera::data {

// data.path, data.train_images and data.test_images.
std::vector<Option> held_image_options();

// The set. Throws Error(invalid_file) naming `files` where they do not fit each other.
ClassificationDataset held_images(const Tensor& images, const Tensor& labels, const std::string& files,
                                  std::vector<std::string> class_names = {});

}  // namespace tessera::data
