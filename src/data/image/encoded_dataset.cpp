#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/data/encoded.h"

namespace tessera::data {
EncodedDataset::EncodedDataset(std::shared_ptr<const EncodedSamples> samples,
                               const EncodedDatasetOptions& options)
    : samples_(std::move(samples)),
      options_(options),
      broken_(options.broken, samples_ != nullptr ? samples_->size() : 0) {
  const auto code = ErrorCode::invalid_argument;
  const Shape& shape = options_.image_shape;
  require(samples_ != nullptr && samples_->size() > 0, code, "a data set of no samples");
  require(shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && (shape[2] == 1 || shape[2] == 3), code,
          "images of shape {}, expected [H, W, 1 or 3]", to_string(shape));
  require(options_.center_share > 0 && options_.center_share <= 1, code,
          "the middle that is kept is {} of the shorter side, expected above 0 and at most 1",
          options_.center_share);
  check_random_crop(options_.crop);
}

void EncodedDataset::read(int64_t index, std::span<uint8_t> image, int32_t& label) const {
  const auto middle = [&](int64_t, const ImageInfo& info, DecodeOptions& options) {
    options.crop = center_crop(info.height, info.width, options_.center_share);
  };
  read_or_replace(index, middle, image, label);
}

void EncodedDataset::read_random(int64_t index, const RandomView& view, std::span<uint8_t> image,
                                 int32_t& label) const {
  const auto random = [&](int64_t example, const ImageInfo& info, DecodeOptions& options) {
    options.crop = random_crop(options_.crop, info.height, info.width, view.seed, view.epoch, example);
    options.mirrored = options_.mirror && random_mirror(view.seed, view.epoch, example);
  };
  read_or_replace(index, random, image, label);
}

template <typename Choose>
void EncodedDataset::read_or_replace(int64_t index, const Choose& choose, std::span<uint8_t> image,
                                     int32_t& label) const {
  const bool is_there = broken_.read(index, [&](int64_t candidate) {
    decode(candidate, choose, image);
    label = samples_->label(candidate);
  });
  if (is_there) return;
  std::ranges::fill(image, uint8_t{0});
  label = -1;
}

template <typename Choose>
void EncodedDataset::decode(int64_t index, const Choose& choose, std::span<uint8_t> image) const {
  const std::vector<std::byte> bytes = samples_->bytes(index);
  EncodedImage encoded(bytes, samples_->name(index), options_.limits);
  DecodeOptions options{.height = options_.image_shape[0],
                        .width = options_.image_shape[1],
                        .channels = options_.image_shape[2],
                        .filter = options_.filter};
  choose(index, encoded.info(), options);
  encoded.decode(options, image);
}

}  // namespace tessera::data
