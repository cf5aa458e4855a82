#include "tessera/data/loader.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/device/common/jpeg_decoding.h"

#include "data/batches.h"

namespace tessera::data {
namespace {

constexpr const char* kHeight = "height";
constexpr const char* kWidth = "width";

class LabeledImages : public Examples {
 public:
  LabeledImages(ShapedImages shaped, bool is_open, const ImageExampleOptions& options)
      : shaped_(std::move(shaped)),
        is_open_(is_open),
        random_views_(options.random_views),
        decode_(options.decode),
        padding_label_(options.padding_label),
        augmenter_(options.augmentation, first().image_shape()) {}

  int64_t size() const override { return first().size(); }
  std::vector<Field> fields() const override {
    const Dimension batch = Dimension::symbol(kBatch);
    const Shape& image = first().image_shape();
    const Dimension height = is_open_ ? Dimension::symbol(kHeight) : Dimension(image[0]);
    const Dimension width = is_open_ ? Dimension::symbol(kWidth) : Dimension(image[1]);
    return {{"images", {DataType::uint8, {batch, height, width, image[2]}}},
            {"labels", {DataType::int32, {batch}}}};
  }
  std::vector<SymbolBindings> buckets() const override {
    if (!is_open_) return Examples::buckets();
    std::vector<SymbolBindings> result;
    for (const std::shared_ptr<const Dataset>& shape : shaped_.shapes)
      result.push_back({{kHeight, shape->image_shape()[0]}, {kWidth, shape->image_shape()[1]}});
    return result;
  }
  int64_t bucket_of(int64_t index) const override {
    return shaped_.shape_of.empty() ? 0 : shaped_.shape_of[static_cast<size_t>(index)];
  }
  int32_t class_of(int64_t index) const override { return first().label(index); }
  void read(int64_t index, const RandomView& view, const ExampleRow& row) const override {
    const auto image = elements_of<uint8_t>(row, kImages);
    int32_t& label = elements_of<int32_t>(row, kLabels).front();
    if (random_views_) {
      dataset_of(index).read_random(index, view, image, label);
    } else {
      dataset_of(index).read(index, image, label);
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
    const JpegsUnderWay decoded =
        dataset_of(indices.front())
            .decode_rows(images, random_views_ ? &view : nullptr, *made->device().extension<JpegDecoding>());
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
  std::vector<std::string> remarks() const override {
    std::vector<std::string> all;
    for (const std::shared_ptr<const Dataset>& shape : shaped_.shapes) {
      for (std::string& remark : shape->remarks()) all.push_back(std::move(remark));
    }
    return all;
  }

 private:
  const Dataset& first() const { return *shaped_.shapes.front(); }
  const Dataset& dataset_of(int64_t index) const {
    return *shaped_.shapes[static_cast<size_t>(bucket_of(index))];
  }

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

  const ShapedImages shaped_;
  const bool is_open_;  // height and width are symbols
  const bool random_views_;
  const DecodePlace decode_;
  const int32_t padding_label_;
  const Augmenter augmenter_;
};

std::shared_ptr<const Examples> examples_of(ShapedImages shaped, bool is_open,
                                            const ImageExampleOptions& options) {
  require(!shaped.shapes.empty() && shaped.shapes.front() != nullptr, ErrorCode::invalid_argument,
          "a loader needs a data set");
  return std::make_shared<const LabeledImages>(std::move(shaped), is_open, options);
}

}  // namespace

DecodePlace decode_place_of(const std::string& name) {
  return name == "gpu" ? DecodePlace::gpu : DecodePlace::cpu;
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const BatchOptions& batching,
               const ImageExampleOptions& images)
    : ExampleBatches(examples_of({.shapes = {dataset}}, false, images), batching),
      dataset_(std::move(dataset)) {}

Loader::Loader(ShapedImages shaped, const BatchOptions& batching, const ImageExampleOptions& images)
    : ExampleBatches(examples_of(shaped, true, images), batching), dataset_(shaped.shapes.front()) {}

}  // namespace tessera::data
