#include "tessera/data/dataset.h"

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/device/common/jpeg_decoding.h"

namespace tessera::data {
namespace {

constexpr int64_t kMaximumClasses = 1'000'000;  // as of data.classes

// Of any integers, so that a number beyond int32 is told as it stands.
Tensor labels_as_int64(const Tensor& labels) {
  require(is_integer(labels.data_type()), ErrorCode::invalid_argument, "labels must be integers, got {}",
          to_string(labels.data_type()));
  const Shape& shape = labels.shape();
  require(shape.size() == 1 || (shape.size() == 2 && shape[1] == 1), ErrorCode::invalid_argument,
          "labels must have shape [N] or [N, 1], got {}", to_string(shape));
  return labels.cast(DataType::int64).reshape({shape[0]});
}

}  // namespace

std::string class_name(const std::vector<std::string>& names, int64_t label) {
  const bool known = label >= 0 && label < static_cast<int64_t>(names.size());
  return known ? names[static_cast<size_t>(label)] : std::to_string(label);
}

std::vector<std::string> named_classes(int64_t count, std::vector<std::string> names) {
  for (int64_t i = std::ssize(names); i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

JpegsUnderWay Dataset::decode_rows(std::span<const DeviceImageRow> rows, const RandomView* /*view*/,
                                   JpegDecoding& /*decoding*/) const {
  return {.taken = std::vector<bool>(rows.size(), false), .done = nullptr};
}

ClassificationDataset::ClassificationDataset(const Tensor& images, const Tensor& labels,
                                             std::vector<std::string> class_names)
    : class_names_(std::move(class_names)) {
  Shape shape = images.shape();
  require(images.data_type() == DataType::uint8, ErrorCode::invalid_argument, "images must be uint8, got {}",
          to_string(images.data_type()));
  require(shape.size() == 3 || shape.size() == 4, ErrorCode::invalid_argument,
          "images must have shape [N, H, W] or [N, H, W, C], got {}", to_string(shape));
  require(shape[0] == labels.shape()[0], ErrorCode::invalid_argument, "{} images but {} labels", shape[0],
          labels.shape()[0]);
  require(images.size() > 0, ErrorCode::invalid_argument, "images of shape {} hold nothing",
          to_string(shape));
  if (shape.size() == 3) shape.push_back(1);
  images_ = images.reshape(shape);
  image_shape_.assign(shape.begin() + 1, shape.end());

  const Tensor numbers = labels_as_int64(labels);
  const auto values = numbers.data<int64_t>();
  // The number of classes comes from the labels only once they are known to be some.
  const int64_t most = class_names_.empty() ? kMaximumClasses : class_count();
  const auto fault =
      std::find_if(values.begin(), values.end(), [&](int64_t label) { return label < 0 || label >= most; });
  require(fault == values.end(), ErrorCode::invalid_argument,
          "label {} of example {} is not one of {}{} classes", fault == values.end() ? 0 : *fault,
          fault - values.begin(), class_names_.empty() ? "at most " : "", most);
  if (class_names_.empty()) class_names_ = named_classes(*std::max_element(values.begin(), values.end()) + 1);
  labels_ = numbers.cast(DataType::int32);
}

void ClassificationDataset::read(int64_t index, std::span<uint8_t> image, int32_t& label) const {
  const auto pixels =
      images_.data<uint8_t>().subspan(static_cast<size_t>(index) * image.size(), image.size());
  std::ranges::copy(pixels, image.begin());
  label = this->label(index);
}

int32_t ClassificationDataset::label(int64_t index) const {
  return labels_.data<int32_t>()[static_cast<size_t>(index)];
}

}  // namespace tessera::data
