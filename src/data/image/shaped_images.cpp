#include "tessera/data/shaped_images.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/parallel.h"
#include "tessera/base/rounding.h"

namespace tessera::data {
namespace {

constexpr double kLongSides[] = {4.0 / 3, 3.0 / 2, 2};  // of a shorter side
constexpr int64_t kMultiple = 8;                        // pixels of a long side

double ratio_of(const Shape& shape) {
  return static_cast<double>(shape[1]) / static_cast<double>(shape[0]);
}

int64_t nearest(const std::vector<std::shared_ptr<const Dataset>>& shapes, double ratio) {
  const auto away = [&](const std::shared_ptr<const Dataset>& shape) {
    return std::abs(std::log(ratio_of(shape->image_shape()) / ratio));
  };
  return std::ranges::min_element(shapes, {}, away) - shapes.begin();
}

// Files' headers take long to read where there are many.
std::vector<int64_t> nearest_of_all(const std::vector<std::shared_ptr<const Dataset>>& shapes) {
  const Dataset& images = *shapes.front();
  std::vector<int64_t> result(static_cast<size_t>(images.size()));
  for_each_in_parallel(images.size(), [&](int64_t index) {
    result[static_cast<size_t>(index)] = nearest(shapes, images.ratio(index));
  });
  return result;
}

}  // namespace

ShapedImages shaped_images(std::vector<std::shared_ptr<const Dataset>> shapes) {
  require(!shapes.empty(), ErrorCode::invalid_argument, "images of no shape");
  for (const std::shared_ptr<const Dataset>& shape : shapes) {
    require(shape != nullptr, ErrorCode::invalid_argument, "images that are of one shape alone");
    require(shape->size() == shapes.front()->size(), ErrorCode::invalid_argument,
            "{} images in one shape, {} in another", shapes.front()->size(), shape->size());
  }
  ShapedImages result;
  std::vector<int64_t> places(shapes.size(), -1);  // among those that an example has
  for (const int64_t own : nearest_of_all(shapes)) {
    int64_t& place = places[static_cast<size_t>(own)];
    if (place < 0) {
      place = std::ssize(result.shapes);
      result.shapes.push_back(shapes[static_cast<size_t>(own)]);
    }
    result.shape_of.push_back(place);
  }
  return result;
}

std::vector<Shape> common_image_shapes(int64_t side, int64_t channels) {
  std::vector<Shape> shapes{{side, side, channels}};
  for (const double longer : kLongSides) {
    const int64_t rounded = round_up(std::llround(static_cast<double>(side) * longer), kMultiple);
    shapes.push_back({side, rounded, channels});
    shapes.push_back({rounded, side, channels});
  }
  return shapes;
}

}  // namespace tessera::data
