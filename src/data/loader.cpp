#include "tessera/data/loader.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/device/common/jpeg_decoding.h"

#include "data/batches.h"

namespace tessera::data {
namespace {

class LabeledImages : public Examples {
 public:
  LabeledImages(std::shared_ptr<const Dataset> dataset, const ImageExampleOptions& options)
      : dataset_(std::move(dataset)),
        random_views_(options.random_views),
        decode_(options.decode),
        padding_label_(options.padding_label),
        augmenter_(options.augmentation, dataset_->image_shape()) {}

  int64_t size() const override { return dataset_->size(); }
  std::vector<Field> fields() const override {
    const Dimension batch = Dimension::symbol(kBatch);
    const Shape& image = dataset_->image_shape();
    return {{"images", {DataType::uint8, {batch, image[0], image[1], image[2]}}},
            {"labels", {DataType::int32, {batch}}}};
  }
  int32_t class_of(int64_t index) const override { return dataset_->label(index); }
  void read(int64_t index, const RandomView& view, const ExampleRow& row) const override {
    const auto image = elements_of<uint8_t>(row, kImages);
    int32_t& label = elements_of<int32_t>(row, kLabels).front();
    if (random_views_) {
      dataset_->read_random(index, view, image, label);
    } else {
      dataset_->read(index, image, label);
    }
    finish(index, view, row);
  }
  std::optional<size_t> field_made_by(Device& device) const override {
    if (decode_ == DecodePlace::cpu) return std::nullopt;
    require(device.extension<JpegDecoding>() != nullptr, ErrorCode::unsupported,
            "the device '{}' decodes no images; let the CPU do it (data.decode = \"cpu\")",
            device.description().name);
    return kImages;
  }
  void read_rows(std::span<const int64_t> indices, const RandomView& view, std::span<const ExampleRow> rows,
                 DeviceRows* made) const override {
    if (made == nullptr) {
      Examples::read_rows(indices, view, rows, made);
      return;
    }
    std::vector<DeviceImageRow> images;
    for (size_t i = 0; i < indices.size(); ++i)
      images.push_back({.index = indices[i],
                        .image = reinterpret_cast<uint8_t*>(made->there(i)),
                        .label = elements_of<int32_t>(rows[i], kLabels).data()});
    const JpegsUnderWay decoded = dataset_->decode_rows(images, random_views_ ? &view : nullptr,
                                                        *made->device().extension<JpegDecoding>());
    made->written_after(decoded.done);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (decoded.taken[i] && !augmenter_.changes()) {
        settle_label(rows[i]);
        continue;
      }
      ExampleRow row = rows[i];
      row[kImages] = decoded.taken[i] ? made->read_back(i) : made->on_host(i);
      decoded.taken[i] ? finish(indices[i], view, row) : read(indices[i], view, row);
    }
  }
  void fill(const ExampleRow& row) const override {
    Examples::fill(row);
    elements_of<int32_t>(row, kLabels).front() = padding_label_;
  }
  std::vector<std::string> remarks() const override { return dataset_->remarks(); }

 private:
  // What is done to an example after it was read.
  void finish(int64_t index, const RandomView& view, const ExampleRow& row) const {
    settle_label(row);
    augmenter_.apply(elements_of<uint8_t>(row, kImages), view.seed, view.epoch, index);
  }

  void settle_label(const ExampleRow& row) const {
    int32_t& label = elements_of<int32_t>(row, kLabels).front();
    if (label < 0) label = padding_label_;
  }

  static constexpr size_t kImages = 0;
  static constexpr size_t kLabels = 1;

  const std::shared_ptr<const Dataset> dataset_;
  const bool random_views_;
  const DecodePlace decode_;
  const int32_t padding_label_;
  const Augmenter augmenter_;
};

std::shared_ptr<const Examples> examples_of(const std::shared_ptr<const Dataset>& dataset,
                                            const ImageExampleOptions& options) {
  require(dataset != nullptr, ErrorCode::invalid_argument, "a loader needs a data set");
  return std::make_shared<const LabeledImages>(dataset, options);
}

}  // namespace

DecodePlace decode_place_of(const std::string& name) {
  return name == "gpu" ? DecodePlace::gpu : DecodePlace::cpu;
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const BatchOptions& batching,
               const ImageExampleOptions& images)
    : ExampleBatches(examples_of(dataset, images), batching), dataset_(std::move(dataset)) {}

}  // namespace tessera::data
