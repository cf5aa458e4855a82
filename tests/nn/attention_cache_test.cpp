// What caches of keys and values have room for, but nothing in yet, is not read: here it is NaN.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/graph/operator.h"
#include "tessera/nn/attention_parts.h"
#include "tessera/nn/layers.h"

#include "support/random_tensor.h"

namespace tessera::testing {
namespace {

constexpr int64_t kCapacity = 6, kWidth = 4, kKeyHeads = 2;

struct CacheGraph {
  Graph graph;
  nn::Context context{graph, nn::Mode::inference};

  Value* input(const std::string& name, DataType type, const Shape& shape) {
    return graph.add_input(InputRole::input, name, {type, to_symbolic(shape)});
  }
  // The result for these numbers, random others, and states that hold `unused` at the places from `first` on.
  Tensor result(const std::map<std::string, Tensor>& given, int64_t first, double unused) const {
    std::vector<Tensor> inputs;
    for (const auto& value : graph.inputs()) {
      const Shape shape = value->type().static_shape();
      const auto own = given.find(value->name());
      Tensor tensor = own != given.end() ? own->second
                                         : random_tensor(value->data_type(), shape, -1, 1, 5 + inputs.size());
      // [..., capacity, width], of which the former may have joined other axes.
      for (int64_t i = 0; value->role() == InputRole::state && i < tensor.size(); ++i) {
        if (i / kWidth % kCapacity >= first) tensor.set(i, unused);
      }
      inputs.push_back(std::move(tensor));
    }
    return run_reference(graph, inputs).outputs.front();
  }
};

void expect_unread(const CacheGraph& cache, const std::map<std::string, Tensor>& given, int64_t first) {
  const Tensor y = cache.result(given, first, 0);
  EXPECT_TRUE(y.identical(cache.result(given, first, std::numeric_limits<double>::quiet_NaN())));
  for (const double number : y.to_doubles()) EXPECT_TRUE(std::isfinite(number));
}

// Of a single token, and of several, of which some fill up.
TEST(AttentionCache, LeavesUnreadWhatComesAfterAPass) {
  for (const int64_t group : {1, 2}) {
    for (const std::vector<int32_t>& places :
         {std::vector<int32_t>{3}, {0}, {kCapacity - 1}, {2, 3, 4}, {2, 3, -1, -1}}) {
      CacheGraph one;
      const auto tokens = std::ssize(places);
      Value* at = one.input("places", DataType::int32, {tokens});
      Value* q = one.input("q", DataType::fp32, {1, group * kKeyHeads, tokens, kWidth});
      Value* k = one.input("k", DataType::fp32, {1, kKeyHeads, tokens, kWidth});
      Value* v = one.input("v", DataType::fp32, {1, kKeyHeads, tokens, kWidth});
      one.graph.add_output("y", nn::AttentionCache(at, kCapacity).attend(one.context, q, k, v));
      expect_unread(one, {{"places", Tensor::from<int32_t>({tokens}, places)}}, places.front());
    }
  }
}

// What fills up a pass of one token sees what there is.
TEST(AttentionCache, HasANumberForWhatFillsUp) {
  CacheGraph one;
  Value* at = one.input("places", DataType::int32, {1});
  Value* x = one.input("x", DataType::fp32, {1, kKeyHeads, 1, kWidth});
  one.graph.add_output("y", nn::AttentionCache(at, kCapacity).attend(one.context, x, x, x));
  expect_unread(one, {{"places", Tensor::from<int32_t>({1}, {-1})}}, 1);
}

TEST(RowsCache, LeavesUnreadWhatComesAfterAPass) {
  constexpr int64_t kRows = 3;
  for (const int32_t place : {0, 2, static_cast<int32_t>(kCapacity) - 1}) {
    CacheGraph rows;
    Value* at = rows.input("place", DataType::int32, {1});
    Value* parents = rows.input("parents", DataType::int32, {kRows});
    const Shape shape{kRows, kKeyHeads, 1, kWidth};
    Value* q = rows.input("q", DataType::fp32, shape);
    Value* k = rows.input("k", DataType::fp32, shape);
    Value* v = rows.input("v", DataType::fp32, shape);
    rows.graph.add_output("y", nn::RowsCache(at, parents, kCapacity).attend(rows.context, q, k, v));
    expect_unread(rows,
                  {{"place", Tensor::from<int32_t>({1}, {place})},
                   {"parents", Tensor::from<int32_t>({kRows}, {1, 1, 0})}},
                  place);
  }
}

}  // namespace
}  // namespace tessera::testing
