// Labeled images as recipes ask for them, for whichever task: the section [data].
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/data/loader.h"
#include "tessera/nn/images.h"
#include "tessera/train/task_registry.h"

namespace tessera::tasks {

train::OptionSection image_data_options();
std::vector<Contradiction> check_image_data(const Options& settings);

// Throws Error(io) or Error(invalid_file) naming what is missing or broken, Error(invalid_argument) when the
// images are not those of the recipe.
// Squares of `data.image_size` or, to test on, of `data.test_size`.
std::shared_ptr<const data::Dataset> image_dataset(const Options& settings, data::Split split);
// Files that somebody names, in that order, of label -1. Throws Error(invalid_argument) where the kind of
// images has no such files.
std::shared_ptr<const data::Dataset> named_images(const Options& settings,
                                                  const std::vector<std::string>& files);
// Whether images are evaluated in another size than they are trained in, or in several: the sources' images
// then have the symbols "height" and "width".
bool has_open_size(const Options& settings);
// How the network takes them.
nn::ImageInput image_input(const Options& settings);
// Shuffled and augmented as the recipe says.
std::shared_ptr<const data::Source> training_images(std::shared_ptr<const data::Dataset> images,
                                                    const Options& settings);
// In their order and without chance, the last batch filled up. Where `data.rectangular` says so, in the
// shapes that their files have, about, of which `images` is the square.
std::shared_ptr<const data::Source> images_in_order(std::shared_ptr<const data::Dataset> images,
                                                    const Options& settings);

}  // namespace tessera::tasks
