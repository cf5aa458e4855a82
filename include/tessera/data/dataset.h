// Where examples come from: the interface, and the two data sets that need no decoding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/data/random_view.h"

namespace tessera {
class JpegDecoding;
struct JpegsUnderWay;
}  // namespace tessera

namespace tessera::data {

// Where an example belongs in a batch whose images a device makes.
struct DeviceImageRow {
  int64_t index = 0;         // of the example
  uint8_t* image = nullptr;  // H*W*C bytes on the device
  int32_t* label = nullptr;
};

// Labeled images of one shape, channels-last. Reading is const and safe from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;                                 // examples
  virtual const Shape& image_shape() const = 0;                     // [H, W, C]
  virtual const std::vector<std::string>& class_names() const = 0;  // name of label 0, 1, ...
  int64_t class_count() const { return static_cast<int64_t>(class_names().size()); }

  // The label that read() gives an example; -1 where that is not known before.
  virtual int32_t label(int64_t /*index*/) const { return -1; }
  // Width to height of what an example is cut from.
  virtual double ratio(int64_t /*index*/) const {
    return static_cast<double>(image_shape()[1]) / static_cast<double>(image_shape()[0]);
  }
  // The same examples in another shape, of as many channels; null where they have one alone.
  virtual std::shared_ptr<const Dataset> reshaped(const Shape& /*image_shape*/) const { return nullptr; }
  // Writes example `index`, 0 <= index < size(), into its place of a batch: H*W*C bytes, and its
  // label in [0, class_count()), or -1 where the row is to count nothing.
  virtual void read(int64_t index, std::span<uint8_t> image, int32_t& label) const = 0;
  // The same as training sees it: a random part of it, where images are cut while they are decoded.
  virtual void read_random(int64_t index, const RandomView& /*view*/, std::span<uint8_t> image,
                           int32_t& label) const {
    read(index, image, label);
  }
  // Rows of a batch at once, as far as the device's decoder takes them: as read_random() where there is a
  // view, and as read() otherwise, but for what the two decoders differ by. The others are to be read so.
  virtual JpegsUnderWay decode_rows(std::span<const DeviceImageRow> rows, const RandomView* view,
                                    JpegDecoding& decoding) const;
  // What a report says of the examples that were read so far, a sentence each.
  virtual std::vector<std::string> remarks() const { return {}; }
};

// The name of a class, or its number where the names end: a network may have more outputs than its data has
// classes.
std::string class_name(const std::vector<std::string>& names, int64_t label);

// At least so many names: those given, and numbers where they end.
std::vector<std::string> named_classes(int64_t count, std::vector<std::string> names = {});

// Images and labels held in memory.
class ClassificationDataset : public Dataset {
 public:
  // images: uint8 [N, H, W] or [N, H, W, C]. labels: integers [N] or [N, 1]. Without class_names
  // the classes are called "0", "1", ... up to the largest label. Throws Error(invalid_argument) when the
  // counts differ, the set is empty or a label has no class.
  ClassificationDataset(const Tensor& images, const Tensor& labels,
                        std::vector<std::string> class_names = {});

  int64_t size() const override { return images_.shape()[0]; }
  const Shape& image_shape() const override { return image_shape_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  int32_t label(int64_t index) const override;
  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override;

  const Tensor& images() const { return images_; }  // uint8 [N, H, W, C]
  const Tensor& labels() const { return labels_; }  // int32 [N]

 private:
  Tensor images_;
  Tensor labels_;
  Shape image_shape_;
  std::vector<std::string> class_names_;
};

enum class Split { train, test };

struct IdxFolderOptions {
  Split split = Split::train;
  std::vector<std::string> class_names = {};  // empty: "0", "1", ...
};

// MNIST's files: train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-... for the test split, plain
// or with
// ".gz". Throws Error(io) naming the files looked for, Error(invalid_file) when they do not fit each other.
ClassificationDataset load_idx_folder(const std::filesystem::path& folder,
                                      const IdxFolderOptions& options = {});

// T-shirt/top, Trouser, ... (Xiao, Rasul, Vollgraf, "Fashion-MNIST", 2017, table 2).
std::vector<std::string> fashion_mnist_class_names();

struct SyntheticOptions {
  int64_t size = 1024;  // examples
  Shape image_shape = {224, 224, 3};
  int64_t classes = 1000;
  uint64_t seed = 0;
};

// Fixed random images and labels, for benchmarks and tests. Few distinct images are kept and repeated, so
// that reading costs a copy and nothing else.
class SyntheticDataset : public Dataset {
 public:
  // Throws Error(invalid_argument) unless every number is positive.
  explicit SyntheticDataset(const SyntheticOptions& options);

  int64_t size() const override { return options_.size; }
  const Shape& image_shape() const override { return options_.image_shape; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  int32_t label(int64_t index) const override;
  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override;

 private:
  SyntheticOptions options_;
  std::vector<std::string> class_names_;
  Tensor images_;  // uint8 [distinct, H, W, C]
};

}  // namespace tessera::data
