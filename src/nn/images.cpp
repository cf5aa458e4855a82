#include "tessera/nn/images.h"

#include <algorithm>
#include <string_view>

#include "tessera/base/error.h"

#include "nn/channels.h"

namespace tessera::nn {
namespace {

void check_channels(const Value* images, std::string_view name, const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  require(count <= 1 || images->shape().back() == Dimension(count), ErrorCode::invalid_argument,
          "{} has {} numbers, the images have {} channels", name, count, images->shape().back().to_string());
}

bool all_are(const std::vector<float>& values, float number) {
  return std::ranges::all_of(values, [&](float value) { return value == number; });
}

}  // namespace

ops::Expression normalize_images(Value* images, const ImageInput& input) {
  check_channels(images, "mean", input.mean);
  check_channels(images, "deviation", input.deviation);
  for (const float deviation : input.deviation) {
    require(deviation > 0, ErrorCode::invalid_argument, "deviation is {}, it must be above 0", deviation);
  }
  Value* x = ops::cast(images, DataType::fp32);
  if (input.type == DataType::uint8) x = ops::divide(x, 255);
  if (!all_are(input.mean, 0)) x = ops::subtract(x, of_channels(x, input.mean));
  if (!all_are(input.deviation, 1)) x = ops::divide(x, of_channels(x, input.deviation));
  return x;
}

}  // namespace tessera::nn
