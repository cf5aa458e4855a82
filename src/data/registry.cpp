#include "tessera/data/registry.h"

namespace tessera::data {
namespace {

std::vector<Option> counts(int64_t training, int64_t test) {
  return {{.key = "train_images",
           .value = training,
           .documentation = "Training images: only the first so many, or how many to make up",
           .limits = Limits::between(1, 1e9),
           .resuming = Resuming::fixed},
          {.key = "test_images",
           .value = test,
           .documentation = "The same for the test images",
           .limits = Limits::between(1, 1e9),
           .resuming = Resuming::free}};
}

}  // namespace

Registry<ImageSetDescription>& image_sets() {
  static Registry<ImageSetDescription> sets("kind of images");
  return sets;
}

Option path_option(const std::string& documentation) {
  return {.key = "path",
          .value = std::string(),
          .documentation = documentation,
          .is_path = true,
          .resuming = Resuming::free};
}

std::vector<Contradiction> check_path(const Options& options) {
  if (!options.text("path").empty()) return {};
  return {{{"kind", "path"}, "'data.path' is missing (as an option: --set data.path=FOLDER)"}};
}

std::vector<Option> image_count_options(const std::string& all) {
  std::vector<Option> options = counts(1, 1);
  for (Option& option : options) option.unset = all;
  return options;
}

std::vector<Option> image_count_options(int64_t training, int64_t test) {
  return counts(training, test);
}

}  // namespace tessera::data
