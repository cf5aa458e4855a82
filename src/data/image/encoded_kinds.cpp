// Folders and shards of encoded images as recipes choose them.
#include "tessera/data/encoded.h"
#include "tessera/data/registry.h"

#include "data/sample_files.h"

namespace tessera::data {
namespace {

using Opener = std::shared_ptr<const EncodedSamples> (*)(const std::filesystem::path&, const SplitOptions&);

ResizeFilter filter_of(const std::string& name) {
  if (name == "nearest") return ResizeFilter::nearest;
  if (name == "area") return ResizeFilter::area;
  return name == "bicubic" ? ResizeFilter::bicubic : ResizeFilter::bilinear;
}

// What is tested is read once where training reads it over and over.
KeptSamples kept_samples_of(const Options& options, Split split) {
  const std::string& cache = options.text("cache");
  if (split != Split::train || cache == "none") return KeptSamples::none;
  return cache == "files" ? KeptSamples::files : KeptSamples::pixels;
}

std::shared_ptr<const Dataset> make(std::shared_ptr<const EncodedSamples> samples, const Options& options,
                                    const ImageSetRequest& request) {
  const std::vector<double> share = options.reals("crop_share");
  const std::vector<double> ratio = options.reals("crop_ratio");
  return std::make_shared<EncodedDataset>(
      std::move(samples), EncodedDatasetOptions{.image_shape = request.image_shape,
                                                .crop = {.minimum_share = share.front(),
                                                         .maximum_share = share.back(),
                                                         .minimum_ratio = ratio.front(),
                                                         .maximum_ratio = ratio.back()},
                                                .mirror = request.mirror,
                                                .center_share = options.real("center_share"),
                                                .center_ratio = static_cast<double>(request.image_shape[1]) /
                                                                static_cast<double>(request.image_shape[0]),
                                                .filter = filter_of(options.text("resize")),
                                                .broken = broken_samples_of(options.text("broken")),
                                                .keep = kept_samples_of(options, request.split),
                                                .keep_bytes = options.integer("cache_mib") << 20,
                                                .host_share = options.real("cpu_share")});
}

std::vector<Option> encoded_options() {
  return {
      path_option(
          "Folder of the data; its parts `train` and `val` (or `validation`, `test`), if it has them"),
      {.key = "test_share",
       .value = 0.1,
       .documentation = "Of each class, evenly spread, not trained on, where the folder has no such parts",
       .limits = Limits::fraction(),
       .resuming = Resuming::fixed},
      {.key = "crop_share",
       .value = std::vector<double>{0.08, 1},
       .documentation = "Of an image's area, from and to: the part that training cuts at random",
       .limits = {.low = 0, .high = 1, .low_open = true}},
      {.key = "crop_ratio",
       .value = std::vector<double>{0.75, 4.0 / 3},
       .documentation = "Width to height of that part, from and to",
       .limits = {.low = 0, .high = 100, .low_open = true}},
      {.key = "center_share",
       .value = 0.875,
       .documentation = "Of the shorter side: the square in the middle that evaluation keeps",
       .limits = {.low = 0, .high = 1, .low_open = true}},
      {.key = "test_size",
       .value = int64_t{224},
       .documentation =
           "Height and width of the images that are evaluated and predicted, in pixels: larger ones "
           "are often told apart better (Touvron et al. 2019). Of `rectangular` ones the shorter side",
       .limits = Limits::between(1, 16384),
       .unset = "`data.image_size`"},
      {.key = "rectangular",
       .value = false,
       .documentation =
           "Whether images that are evaluated and predicted keep about the shape of their files, so "
           "that less is cut off: they come in batches of like shapes"},
      {.key = "resize",
       .value = std::string("bilinear"),
       .documentation = "How a part becomes an image of `image_size`; all but `nearest` with antialiasing",
       .choices = {"nearest", "area", "bilinear", "bicubic"}},
      broken_samples_option(),
      {.key = "decode",
       .value = std::string("cpu"),
       .documentation =
           "What decodes JPEG files: `cpu`, or `gpu`, which leaves to the CPU what its decoder does "
           "not take; its pixels differ by a few gray levels",
       .choices = {"cpu", "gpu"}},
      {.key = "cpu_share",
       .value = 0.0,
       .documentation = "Of the files that the GPU would decode, the share that the CPU decodes beside it; "
                        "`tessera data bench "
                        "--balance` measures which is fastest",
       .limits = Limits::fraction()},
      {.key = "cache",
       .value = std::string("none"),
       .documentation =
           "What of training images stays in memory, as far as it fits: their `files`, or their `pixels`, "
           "which are then only cut and resized, those that the GPU decodes in its own. With `pixels` JPEG "
           "files are not decoded at reduced scales, whether they are kept or not",
       .choices = {"none", "files", "pixels"}},
      {.key = "cache_mib",
       .value = int64_t{1024},
       .documentation =
           "How much memory that takes at most, of the host and, for what it decodes, of the GPU",
       .limits = Limits::between(1, 1 << 24),
       .resuming = Resuming::free},
  };
}

std::vector<Option> tfrecord_options() {
  const TfRecordOptions usual;
  std::vector<Option> options = encoded_options();
  options.push_back({.key = "image_feature",
                     .value = usual.image,
                     .documentation = "Of each example: the bytes of the image's file",
                     .resuming = Resuming::fixed});
  options.push_back({.key = "label_feature",
                     .value = usual.label,
                     .documentation = "Of each example: the number of its class",
                     .resuming = Resuming::fixed});
  options.push_back({.key = "first_label",
                     .value = usual.first_label,
                     .documentation = "What the first class is called: 1 where 0 means the background",
                     .limits = {.low = 0, .high = 1e6},
                     .resuming = Resuming::fixed});
  return options;
}

std::vector<Contradiction> check_encoded(const Options& options) {
  std::vector<Contradiction> found = check_path(options);
  if (options.real("cpu_share") > 0 && options.text("decode") == "cpu") {
    found.push_back({{"cpu_share", "decode"},
                     "'data.cpu_share' is of files that the GPU decodes ('data.decode' is \"cpu\")"});
  }
  for (const char* key : {"crop_share", "crop_ratio"}) {
    const std::vector<double> range = options.reals(key);
    if (range.size() != 2 || range[0] > range[1])
      found.push_back({{key}, "'data." + std::string(key) + "' must be two numbers that do not fall"});
  }
  return found;
}

template <Opener open_samples>
std::shared_ptr<const Dataset> open(const Options& options, const ImageSetRequest& request) {
  return make(
      open_samples(options.text("path"), {.split = request.split, .test_share = options.real("test_share")}),
      options, request);
}

std::shared_ptr<const Dataset> open_files(const Options& options, const ImageSetRequest& request,
                                          const std::vector<std::string>& files) {
  return make(named_files(files), options, request);
}

std::shared_ptr<const Dataset> open_records(const Options& options, const ImageSetRequest& request) {
  return make(
      open_tfrecords(options.text("path"), {.split = request.split, .test_share = options.real("test_share")},
                     {.image = options.text("image_feature"),
                      .label = options.text("label_feature"),
                      .first_label = options.integer("first_label")}),
      options, request);
}

const ImageSetRegistration kFolder({.name = "image_folder",
                                    .documentation = "JPEG, PNG or WebP files, a folder for each class",
                                    .options = encoded_options(),
                                    .open = open<open_image_folder>,
                                    .check = check_encoded,
                                    .decodes = true,
                                    .open_files = open_files});

const ImageSetRegistration kShards({.name = "tar",
                                    .documentation = "the same in tar shards with WebDataset's names",
                                    .options = encoded_options(),
                                    .open = open<open_tar_shards>,
                                    .check = check_encoded,
                                    .decodes = true,
                                    .open_files = open_files});

const ImageSetRegistration kRecords({.name = "tfrecord",
                                     .documentation = "the same in TFRecord files of tf.train.Example",
                                     .options = tfrecord_options(),
                                     .open = open_records,
                                     .check = check_encoded,
                                     .decodes = true,
                                     .open_files = open_files});

}  // namespace
}  // namespace tessera::data
