// Few files as many: what is measured needs an epoch as long as itself, since threads begin anew with each.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/data/encoded.h"
#include "tessera/device/common/jpeg_decoding.h"

namespace tessera::cli {

// The samples over and over, `size` of them.
class RepeatedSamples : public data::EncodedSamples {
 public:
  RepeatedSamples(std::shared_ptr<const data::EncodedSamples> samples, int64_t size)
      : samples_(std::move(samples)), size_(size) {}

  int64_t size() const override { return size_; }
  int32_t label(int64_t index) const override { return samples_->label(index % samples_->size()); }
  std::string name(int64_t index) const override { return samples_->name(index % samples_->size()); }
  const std::vector<std::string>& class_names() const override { return samples_->class_names(); }
  std::vector<std::byte> bytes(int64_t index) const override {
    return samples_->bytes(index % samples_->size());
  }

 private:
  std::shared_ptr<const data::EncodedSamples> samples_;
  int64_t size_;
};

// The same of images, of which a data set may keep what it has decoded.
class RepeatedImages : public data::Dataset {
 public:
  RepeatedImages(std::shared_ptr<const data::Dataset> images, int64_t size)
      : images_(std::move(images)), size_(size) {}

  int64_t size() const override { return size_; }
  const Shape& image_shape() const override { return images_->image_shape(); }
  const std::vector<std::string>& class_names() const override { return images_->class_names(); }
  void read(int64_t index, std::span<uint8_t> image, int32_t& label) const override {
    images_->read(own(index), image, label);
  }
  void read_random(int64_t index, const data::RandomView& view, std::span<uint8_t> image,
                   int32_t& label) const override {
    images_->read_random(own(index), view, image, label);
  }
  JpegsUnderWay decode_rows(std::span<const data::DeviceImageRow> rows, const data::RandomView* view,
                            JpegDecoding& decoding) const override {
    std::vector<data::DeviceImageRow> owned(rows.begin(), rows.end());
    for (data::DeviceImageRow& row : owned) row.index = own(row.index);
    return images_->decode_rows(owned, view, decoding);
  }

 private:
  int64_t own(int64_t index) const { return index % images_->size(); }

  std::shared_ptr<const data::Dataset> images_;
  int64_t size_;
};

}  // namespace tessera::cli
