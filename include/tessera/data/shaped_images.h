// Images that keep about the shape of their files.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera::data {

// The same examples in several shapes, of which each example has one: a batch is of one shape.
struct ShapedImages {
  std::vector<std::shared_ptr<const Dataset>> shapes = {};
  std::vector<int64_t> shape_of = {};  // of each example; empty: all have the first
};

// Each example has the shape whose width to height is nearest to that of its file (Dataset::ratio(), which
// threads read), and there are no others. Throws Error(invalid_argument) where there is no shape, or data
// sets differ in their size.
ShapedImages shaped_images(std::vector<std::shared_ptr<const Dataset>> shapes);

// A square, and rectangles up to twice as long as wide, of that shorter side: [H, W, channels], long sides
// being multiples of 8.
std::vector<Shape> common_image_shapes(int64_t side, int64_t channels);

}  // namespace tessera::data
