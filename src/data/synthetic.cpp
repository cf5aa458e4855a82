#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/data/registry.h"

namespace tessera::data {
namespace {

constexpr int64_t kDistinctImages = 16;
constexpr uint64_t kImageStream = 1;
constexpr uint64_t kLabelStream = 2;

}  // namespace

SyntheticDataset::SyntheticDataset(const SyntheticOptions& options) : options_(options) {
  const Shape& shape = options.image_shape;
  require(options.size > 0 && options.classes > 0, ErrorCode::invalid_argument,
          "a synthetic data set needs examples and classes, got {} and {}", options.size, options.classes);
  require(shape.size() == 3 && *std::min_element(shape.begin(), shape.end()) > 0, ErrorCode::invalid_argument,
          "the image shape must be [H, W, C], got {}", to_string(shape));
  class_names_ = named_classes(options.classes);
  images_ = Tensor(DataType::uint8, {std::min(options.size, kDistinctImages), shape[0], shape[1], shape[2]});
  const Random random(options.seed, kImageStream);
  uint64_t index = 0;
  for (uint8_t& value : images_.data<uint8_t>()) value = static_cast<uint8_t>(random.below(index++, 256));
}

void SyntheticDataset::read(int64_t index, std::span<uint8_t> image, int32_t& label) const {
  const auto slot = static_cast<size_t>(index % images_.shape()[0]);
  std::ranges::copy(images_.data<uint8_t>().subspan(slot * image.size(), image.size()), image.begin());
  label = this->label(index);
}

int32_t SyntheticDataset::label(int64_t index) const {
  const Random random(options_.seed, kLabelStream);
  return static_cast<int32_t>(
      random.below(static_cast<uint64_t>(index), static_cast<uint64_t>(options_.classes)));
}

namespace {

std::shared_ptr<const Dataset> open_synthetic(const Options& options, const ImageSetRequest& request) {
  const char* const size = request.split == Split::train ? "train_images" : "test_images";
  return std::make_shared<SyntheticDataset>(SyntheticOptions{.size = options.integer(size),
                                                             .image_shape = request.image_shape,
                                                             .classes = request.classes,
                                                             .seed = request.seed});
}

const ImageSetRegistration kRegistration(
    {.name = "synthetic",
     .documentation = "random images for measuring speed, without any file",
     .options = image_count_options(10'000, 1000),
     .open = open_synthetic});

}  // namespace
}  // namespace tessera::data
