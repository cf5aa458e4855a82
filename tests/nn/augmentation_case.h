// What tests of augmentation share.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/nn/augmentation.h"
#include "tessera/ops/functions.h"

namespace tessera::testing {

using Build = std::function<void(Graph& graph, nn::Context& context)>;

// What a graph without inputs but its counter gives, at that step.
inline std::vector<Tensor> outputs_of(const Build& build, int64_t step = 0, const nn::Ranks& ranks = {}) {
  Graph graph("augmentation");
  nn::Context context(graph, nn::Mode::training, {}, ranks);
  build(graph, context);
  std::vector<Tensor> inputs;
  if (!graph.inputs().empty()) inputs.push_back(Tensor::from<int64_t>({2}, {5, step}));
  return run_reference(graph, inputs).outputs;
}

inline Tensor output_of(const Build& build, int64_t step = 0, const nn::Ranks& ranks = {}) {
  return outputs_of(build, step, ranks).at(0);
}

inline Value* numbers(Graph& graph, const std::vector<float>& values) {
  return ops::constant(graph, Tensor::from<float>({std::ssize(values)}, values));
}

inline double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (int64_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a.at(i) - b.at(i)));
  return largest;
}

// To whole gray levels, as Pillow's are.
inline Tensor rounded(Tensor images) {
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, std::round(images.at(i)));
  return images;
}

inline Tensor as_batch(const Tensor& image) {
  return image.clone().reshape({1, image.shape()[0], image.shape()[1], image.shape()[2]});
}

inline Tensor images_of(int64_t batch) {
  Tensor images(DataType::uint8, {batch, 6, 7, 3});
  for (int64_t i = 0; i < images.size(); ++i) images.set(i, static_cast<double>(i * 37 % 251 + 3));
  return images;
}

inline Tensor rows_of(const Tensor& images, int64_t first, int64_t count) {
  Shape shape = images.shape();
  const int64_t size = images.size() / shape[0];
  shape[0] = count;
  Tensor rows(images.data_type(), shape);
  for (int64_t i = 0; i < rows.size(); ++i) rows.set(i, images.at(first * size + i));
  return rows;
}

inline Build augmenting(const Tensor& images, const nn::AugmentationOptions& options) {
  return [images, options](Graph& graph, nn::Context& context) {
    graph.add_output("y", nn::augment_images(context, ops::constant(graph, images), options));
  };
}

}  // namespace tessera::testing
