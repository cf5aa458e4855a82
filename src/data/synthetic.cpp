#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/random.h"
#include "tessera/data/dataset.h"

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
  for (int64_t i = 0; i < options.classes; ++i) class_names_.push_back(std::to_string(i));
  images_ = Tensor(DataType::fp32, {std::min(options.size, kDistinctImages), shape[0], shape[1], shape[2]});
  const Random random(options.seed, kImageStream);
  uint64_t index = 0;
  for (float& value : images_.data<float>()) value = random.uniform(index++);
}

void SyntheticDataset::read(int64_t index, std::span<float> image, int32_t& label) const {
  const int64_t slot = index % images_.shape()[0];
  const float* source = static_cast<const float*>(images_.raw()) + static_cast<size_t>(slot) * image.size();
  std::copy_n(source, image.size(), image.begin());
  const Random random(options_.seed, kLabelStream);
  label = static_cast<int32_t>(
      random.below(static_cast<uint64_t>(index), static_cast<uint64_t>(options_.classes)));
}

}  // namespace tessera::data
