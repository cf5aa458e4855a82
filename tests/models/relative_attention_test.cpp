#include "tessera/nn/relative_attention.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/compile/executable.h"
#include "tessera/compile/feeds.h"

#include "support/compare.h"
#include "support/devices.h"
#include "support/expect_error.h"
#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

// "y" of a graph without variables.
Tensor result_of(const Graph& graph, const std::shared_ptr<Device>& device, const Feeds& feeds = {}) {
  const auto executable = compile(graph, device);
  executable->bind(std::make_shared<Variables>(device));
  return executable->run(feeds).at("y");
}

constexpr int64_t kRows = 2, kHeads = 3, kWidth = 4;

// Adds an input, and its value to the feeds.
class Inputs {
 public:
  explicit Inputs(Graph& graph) : graph_(graph) {}
  Value* add(const std::string& name, const Shape& shape) {
    feeds_.emplace(name, random_tensor(DataType::fp32, shape, -1, 1, ++seed_));
    return graph_.add_input(InputRole::input, name, {DataType::fp32, to_symbolic(shape)});
  }
  const Feeds& feeds() const { return feeds_; }
  double at(const std::string& name, const std::vector<int64_t>& index) const {
    const Tensor& tensor = feeds_.at(name);
    int64_t element = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) element = element * tensor.shape()[axis] + index[axis];
    return tensor.at(element);
  }

 private:
  Graph& graph_;
  Feeds feeds_;
  uint64_t seed_ = 0;
};

// The sum over keys of the softmax of scores that are made one by one, each by its own distance.
std::vector<double> explicit_sums(const Inputs& inputs, int64_t queries, int64_t keys) {
  std::vector<double> result;
  for (int64_t n = 0; n < kRows; ++n) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t visible = keys - queries + i + 1;
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j < visible; ++j) {
          const int64_t distance = keys - queries + i - j;
          double score = 0;
          for (int64_t w = 0; w < kWidth; ++w) {
            const double q = inputs.at("q", {n, h, i, w});
            score += (q + inputs.at("u", {h, w})) * inputs.at("k", {n, h, j, w});
            score += (q + inputs.at("v_bias", {h, w})) * inputs.at("r", {h, keys - 1 - distance, w});
          }
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kWidth))));
          sum += weights.back();
        }
        for (int64_t w = 0; w < kWidth; ++w) {
          double y = 0;
          for (int64_t j = 0; j < visible; ++j)
            y += weights[static_cast<size_t>(j)] / sum * inputs.at("v", {n, h, j, w});
          result.push_back(y);
        }
      }
    }
  }
  return result;
}

TEST(RelativeAttention, IsTheSumOverKeysByTheirDistancesOnEachDevice) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 1}, {4, 4}, {3, 8}, {1, 6}}) {
    Graph graph;
    Inputs inputs(graph);
    Tensor hides(DataType::fp32, {1, 1, queries, keys});
    for (int64_t place = 0; place < hides.size(); ++place)
      hides.set(place, place % keys > keys - queries + place / keys ? -30000 : 0);
    Value* q = inputs.add("q", {kRows, kHeads, queries, kWidth});
    Value* k = inputs.add("k", {kRows, kHeads, keys, kWidth});
    Value* v = inputs.add("v", {kRows, kHeads, keys, kWidth});
    Value* r = inputs.add("r", {kHeads, keys, kWidth});
    Value* u = inputs.add("u", {kHeads, kWidth});
    Value* v_bias = inputs.add("v_bias", {kHeads, kWidth});
    graph.add_output("y", nn::relative_attention({.q = q,
                                                  .k = k,
                                                  .v = v,
                                                  .positions = r,
                                                  .content_bias = u,
                                                  .position_bias = v_bias,
                                                  .hidden = ops::constant(graph, hides)}));
    std::vector<std::shared_ptr<Device>> devices = available_devices();
    devices.push_back(Device::reference());
    for (const auto& device : devices) {
      const Tensor y = result_of(graph, device, inputs.feeds());
      // Sixteen roundings of numbers of at most one.
      expect_close(y, explicit_sums(inputs, queries, keys), {.absolute = 1e-6, .relative = 1e-6},
                   device->description().name);
    }
  }
}

TEST(RelativeAttention, ShiftsEachRowByItsPlace) {
  Graph graph;
  Value* x = graph.add_input(InputRole::input, "x", {DataType::fp32, {1, 1, 3, 5}});
  graph.add_output("y", nn::relative_shift(x));
  Tensor by_distance(DataType::fp32, {1, 1, 3, 5});
  // Each number is its distance.
  for (int64_t i = 0; i < by_distance.size(); ++i) by_distance.set(i, static_cast<double>(4 - i % 5));
  const Tensor y = result_of(graph, Device::reference(), {{"x", by_distance}});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j <= 2 + i; ++j) EXPECT_EQ(y.at(i * 5 + j), static_cast<double>(2 + i - j)) << i << j;
  }
}

TEST(RelativeAttention, HasPositionsOfDistances) {
  const auto positions = [](int64_t keys, int64_t width, int64_t farthest) {
    Graph graph;
    graph.add_output("y", nn::relative_positions(graph, keys, width, farthest));
    return result_of(graph, Device::reference());
  };
  const auto expected = [](double distance) -> std::vector<double> {
    return {std::sin(distance), std::sin(distance / 100), std::cos(distance), std::cos(distance / 100)};
  };
  for (const int64_t farthest : {0, 2}) {
    const Tensor y = positions(5, 4, farthest);
    for (int64_t i = 0; i < 5; ++i) {
      const int64_t distance = farthest == 0 ? 4 - i : std::min<int64_t>(4 - i, farthest);
      for (int64_t w = 0; w < 4; ++w)
        EXPECT_NEAR(y.at(4 * i + w), expected(static_cast<double>(distance))[static_cast<size_t>(w)], 1e-6);
    }
  }
  EXPECT_ERROR(positions(5, 3, 0), ErrorCode::invalid_argument, "positions of 3 numbers");
}

}  // namespace
}  // namespace tessera::testing
