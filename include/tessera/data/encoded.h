// Labeled images in files: folders and tar shards of JPEG, PNG and WebP as data sets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/bounded_cache.h"
#include "tessera/data/broken_samples.h"
#include "tessera/data/dataset.h"
#include "tessera/data/image.h"

namespace tessera {
class KeptJpeg;
}

namespace tessera::data {

// Files as they are stored, with labels. Reading is const and safe from several threads at once.
class EncodedSamples {
 public:
  virtual ~EncodedSamples() = default;

  virtual int64_t size() const = 0;
  virtual int32_t label(int64_t index) const = 0;     // -1: of no class
  virtual std::string name(int64_t index) const = 0;  // as people find it
  virtual const std::vector<std::string>& class_names() const = 0;
  // The bytes of a sample. Throws Error(io) or Error(invalid_file) with its name.
  virtual std::vector<std::byte> bytes(int64_t index) const = 0;
  // The first so many of them, or all. Throws as bytes().
  virtual std::vector<std::byte> first_bytes(int64_t index, int64_t most) const;
  // What is said in it, where that is known. Throws as bytes().
  virtual std::optional<std::string> transcript(int64_t /*index*/) const { return std::nullopt; }
  // How long it is, where that is known without its bytes.
  virtual std::optional<double> seconds(int64_t /*index*/) const { return std::nullopt; }
};

struct SplitOptions {
  Split split = Split::train;
  // Where the folder has no parts of its own for training and test: held out of each class, evenly spread;
  // at least 0 and below 1. 0: nothing is, and the test split is an error.
  double test_share = 0.1;
};

// What is inside a folder that may hold "train" and one of "val", "validation" and "test": that for the
// split. `whole` says that it holds neither, so that the split is by share.
struct SplitFolder {
  std::filesystem::path path;
  bool whole = true;
};
// Throws Error(io) when there is no such folder, Error(invalid_file) when it has one of the parts only and
// the other is wanted.
SplitFolder split_folder(const std::filesystem::path& folder, Split split);

// Whether the folder has a part of its own for the split, by the names of folders in it, of TFRecord files,
// or of lists of sounds (.jsonl).
bool has_part(const std::filesystem::path& folder, Split split);

// One folder for each class; classes and, within them, files in the order of their names. Files in folders
// below a class are its too; those whose ending is not an image's (.jpg, .jpeg, .png, .webp, in any case) are
// left out. Throws Error(io) naming what cannot be read, Error(invalid_file) when there is no image or class,
// or where a link leads to a folder or out of the whole.
std::shared_ptr<const EncodedSamples> open_image_folder(const std::filesystem::path& folder,
                                                        const SplitOptions& options = {});

// Tar files with WebDataset's names, *.tar in the order of theirs: KEY.jpg (or another image's ending) and
// KEY.cls, the number of the class in digits, side by side. classes.txt beside the shards holds the names of
// the classes, one a line; without it they are called by their numbers. An index of the shards is made when
// they are first opened, and kept beside them (index.safetensors) where the folder can be written. Throws
// Error(io) naming what cannot be read, Error(invalid_file) naming the shard and the member that is broken:
// a truncated or corrupt header, an image without a class, a link, a name that leads out of the archive.
std::shared_ptr<const EncodedSamples> open_tar_shards(const std::filesystem::path& folder,
                                                      const SplitOptions& options = {});

struct TfRecordOptions {
  std::string image = "image/encoded";      // the feature with the bytes of an image's file
  std::string label = "image/class/label";  // and that with the number of its class
  int64_t first_label = 0;                  // what the first class is called: 1 where 0 is the background
};

// TFRecord files of tf.train.Example, named *.tfrecord, *.tfrecords or NAME-00000-of-00010, in the order of
// their names. In a folder without parts those whose names begin with "train", and with "val" or "test", are
// the splits. classes.txt and the index are as of tar shards; making the index checks all checksums. Throws
// Error(io) naming what cannot be read, Error(invalid_file) naming the file and the byte of what is damaged,
// compressed, or lacks one of the features.
std::shared_ptr<const EncodedSamples> open_tfrecords(const std::filesystem::path& folder,
                                                     const SplitOptions& options = {},
                                                     const TfRecordOptions& record = {});

// By whichever of these the folder holds: tar shards, TFRecord files of the usual features, or else classes.
std::shared_ptr<const EncodedSamples> open_samples(const std::filesystem::path& folder,
                                                   const SplitOptions& options = {});

// Single files, in that order, of no class: label -1.
std::shared_ptr<const EncodedSamples> named_files(std::vector<std::string> paths);

// What of samples stays in memory once it was read.
enum class KeptSamples : uint8_t {
  none,
  files,   // their bytes
  pixels,  // whole images, where they were decoded: only cut and resized from then on
};

struct EncodedDatasetOptions {
  Shape image_shape = {224, 224, 3};  // [H, W, 1 or 3]
  RandomCropOptions crop = {};        // of read_random()
  bool mirror = false;                // there, of every second image on average
  double center_share = 0.875;        // of the largest middle of that width to height, which read() keeps
  double center_ratio = 1;
  ResizeFilter filter = ResizeFilter::bilinear;
  BrokenSamples broken = BrokenSamples::fail;
  ImageLimits limits = {};
  // With `pixels` JPEG files are never decoded at a reduced scale, so that no image depends on what is kept.
  KeptSamples keep = KeptSamples::none;
  // At most, of all samples together: in the host's memory, and where a device decodes as much in its own.
  int64_t keep_bytes = int64_t{1} << 30;
  // Of the samples that a device is to decode the CPU decodes this share, by their numbers alone; 0 to 1.
  double host_share = 0;
};

// Such samples as images of one size: the middle, or a random-resized crop, cut while decoding.
class EncodedDataset : public Dataset {
 public:
  // Throws Error(invalid_argument) naming the option that is out of range.
  EncodedDataset(std::shared_ptr<const EncodedSamples> samples, const EncodedDatasetOptions& options);

  int64_t size() const override { return samples_->size(); }
  const Shape& image_shape() const override { return options_.image_shape; }
  const std::vector<std::string>& class_names() const override { return samples_->class_names(); }
  int32_t label(int64_t index) const override { return samples_->label(index); }
  // By the file's header; 1 where that cannot be read.
  double ratio(int64_t index) const override;
  // Evaluation then keeps a middle of that width to height.
  std::shared_ptr<const Dataset> reshaped(const Shape& image_shape) const override;
  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override;
  void read_random(int64_t index, const RandomView& view, std::span<uint8_t> image,
                   int32_t& label) const override;
  JpegsUnderWay decode_rows(std::span<const DeviceImageRow> rows, const RandomView* view,
                            JpegDecoding& decoding) const override;
  // How many samples were broken, and which, where any were; how many of those that a device was to decode
  // the CPU did; how many are kept.
  std::vector<std::string> remarks() const override;

  const EncodedSamples& samples() const { return *samples_; }

 private:
  struct KeptOnDevice {
    const JpegDecoding* device = nullptr;  // whose memory holds it
    std::shared_ptr<const KeptJpeg> image;
    ImageInfo info;
  };
  using DeviceCache = BoundedCache<KeptOnDevice>;
  struct AskedPart;

  // Of the middle, or of the random view where there is one, of an image of that height and width.
  DecodeOptions choose_part(int64_t index, int64_t height, int64_t width, const RandomView* view) const;
  std::shared_ptr<const std::vector<std::byte>> file(int64_t index) const;
  void read_or_replace(int64_t index, const RandomView* view, std::span<uint8_t> image, int32_t& label) const;
  void decode(int64_t index, const RandomView* view, std::span<uint8_t> image) const;
  std::optional<AskedPart> ask_for(int64_t index, const RandomView* view, const KeptOnDevice* kept) const;
  // All of it, decoded and kept; null where it is broken somewhere.
  std::shared_ptr<const DecodedImage> keep_whole(int64_t index, EncodedImage& encoded) const;

  std::shared_ptr<const EncodedSamples> samples_;
  EncodedDatasetOptions options_;
  BrokenRecord broken_;
  std::unique_ptr<BoundedCache<std::vector<std::byte>>> kept_files_;  // null: none are kept
  std::unique_ptr<BoundedCache<DecodedImage>> kept_images_;
  std::unique_ptr<DeviceCache> kept_on_device_;
  mutable std::atomic<int64_t> wanted_{0};  // of a device
  mutable std::atomic<int64_t> left_{0};    // of these, decoded by the CPU
  mutable std::atomic<int64_t> shared_{0};  // of those, since they are its share
};

}  // namespace tessera::data
