// What a network is given of the images of a batch.
#pragma once

#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/ops/expression.h"

namespace tessera::nn {

// How images come, and what is made of them.
struct ImageInput {
  DataType type = DataType::uint8;  // of their field; bytes are first taken to 0..1
  // Then (x - mean) / deviation: of each channel, or one number for all; empty: 0 and 1.
  std::vector<float> mean = {};
  std::vector<float> deviation = {};
};

// images: [batch, ..., C] of input.type; returns fp32 of the same shape. Throws Error(invalid_argument)
// naming the numbers that do not fit the channels.
ops::Expression normalize_images(Value* images, const ImageInput& input);

}  // namespace tessera::nn
