// Kinds of data sets by name, with their options: what recipes choose from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/option.h"
#include "tessera/base/registry.h"
#include "tessera/data/dataset.h"

namespace tessera::data {

// What a recipe says of its images, whatever their kind.
struct ImageSetRequest {
  Split split = Split::train;
  Shape image_shape;  // [H, W, C]
  int64_t classes = 0;
  uint64_t seed = 0;
  bool mirror = false;  // whether training mirrors every second image; of sets that cut their images alone
};

struct ImageSetDescription {
  std::string name;
  std::string documentation;  // one line
  std::vector<Option> options;
  // What `options` say beside the request; the images that are there need not be those asked for. Throws
  // Error(io) or Error(invalid_file) naming what is missing or broken.
  std::function<std::shared_ptr<const Dataset>(const Options& options, const ImageSetRequest& request)> open;
  // What cannot go together; empty: nothing.
  std::function<std::vector<Contradiction>(const Options& options)> check = {};
  // Whether reading decodes: such sets cut and mirror meanwhile (Dataset::read_random()) and are worth
  // several threads.
  bool decodes = false;
  // Files that somebody names, as test images of such a set, all of label -1; empty: the kind has no files of
  // single images.
  std::function<std::shared_ptr<const Dataset>(const Options& options, const ImageSetRequest& request,
                                               const std::vector<std::string>& files)>
      open_files = {};
};

Registry<ImageSetDescription>& image_sets();

struct ImageSetRegistration {
  explicit ImageSetRegistration(ImageSetDescription description) { image_sets().add(std::move(description)); }
};

// The option data.path, of images and of all else that is read from files, and what is wrong where it is
// empty.
Option path_option(const std::string& documentation);
std::vector<Contradiction> check_path(const Options& options);

// The options data.train_images and data.test_images, where so many are there, or as many as there are.
std::vector<Option> image_count_options(const std::string& all);
std::vector<Option> image_count_options(int64_t training, int64_t test);

}  // namespace tessera::data
