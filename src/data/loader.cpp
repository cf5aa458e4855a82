#include "tessera/data/loader.h"

#include <utility>

#include "tessera/base/error.h"

#include "data/batches.h"

namespace tessera::data {
namespace {

class LabeledImages : public Examples {
 public:
  LabeledImages(std::shared_ptr<const Dataset> dataset, const ImageExampleOptions& options)
      : dataset_(std::move(dataset)),
        random_views_(options.random_views),
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
    if (label < 0) label = padding_label_;
    augmenter_.apply(image, view.seed, view.epoch, index);
  }
  void fill(const ExampleRow& row) const override {
    Examples::fill(row);
    elements_of<int32_t>(row, kLabels).front() = padding_label_;
  }
  std::vector<std::string> remarks() const override { return dataset_->remarks(); }

 private:
  static constexpr size_t kImages = 0;
  static constexpr size_t kLabels = 1;

  const std::shared_ptr<const Dataset> dataset_;
  const bool random_views_;
  const int32_t padding_label_;
  const Augmenter augmenter_;
};

std::shared_ptr<const Examples> examples_of(const std::shared_ptr<const Dataset>& dataset,
                                            const ImageExampleOptions& options) {
  require(dataset != nullptr, ErrorCode::invalid_argument, "a loader needs a data set");
  return std::make_shared<const LabeledImages>(dataset, options);
}

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const BatchOptions& batching,
               const ImageExampleOptions& images)
    : ExampleBatches(examples_of(dataset, images), batching), dataset_(std::move(dataset)) {}

}  // namespace tessera::data
