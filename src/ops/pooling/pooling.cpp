#include "ops/pooling/pooling.h"

#include "tessera/base/error.h"

namespace tessera::ops {

std::vector<AttributeSpecification> pool_attribute_list() {
  return {{"window", AttributeKind::integers, {}, "Extent of the window per spatial axis."},
          {"strides", AttributeKind::integers, {}, "Step of the window per spatial axis."},
          {"padding_low", AttributeKind::integers, {}, "Padding before the image per spatial axis."},
          {"padding_high", AttributeKind::integers, {}, "Padding after the image per spatial axis."}};
}

std::vector<AttributeSpecification> pool_gradient_attribute_list() {
  std::vector<AttributeSpecification> list = pool_attribute_list();
  list.push_back({"input_shape", AttributeKind::shape, {}, "Shape of the pooling's x, and of the result."});
  return list;
}

PoolOptions pool_options(const Attributes& attributes) {
  return {.window = attributes.integers("window"),
          .strides = attributes.integers("strides"),
          .padding_low = attributes.integers("padding_low"),
          .padding_high = attributes.integers("padding_high"),
          .count_padding = !attributes.contains("count_padding") || attributes.boolean("count_padding")};
}

WindowOptions pool_windows(const Attributes& attributes) {
  return {.window = attributes.integers("window"),
          .strides = attributes.integers("strides"),
          .padding_low = attributes.integers("padding_low"),
          .padding_high = attributes.integers("padding_high"),
          .dilations = std::vector<int64_t>(attributes.integers("window").size(), 1)};
}

SymbolicShape pool_result(const SymbolicShape& x, const Attributes& attributes) {
  const WindowOptions windows = pool_windows(attributes);
  check_windows(windows, static_cast<int64_t>(x.size()) - 2);
  for (size_t axis = 0; axis < windows.window.size(); ++axis) {
    require(
        windows.padding_low[axis] < windows.window[axis] && windows.padding_high[axis] < windows.window[axis],
        ErrorCode::invalid_graph, "padding must be less than the window, or a window would see only padding");
    const bool sees_none = x[axis + 1] == Dimension(0) &&
                           windows.padding_low[axis] + windows.padding_high[axis] >= windows.window[axis];
    require(!sees_none, ErrorCode::invalid_graph,
            "the image has no pixels, and a window would see only padding");
  }
  require(element_count(windows.window) <= kMaximumTensorBytes, ErrorCode::invalid_graph,
          "a window of {} elements is larger than any image", to_string(windows.window));
  SymbolicShape result = window_counts(spatial_shape(x), windows);
  result.insert(result.begin(), x.front());
  result.push_back(x.back());
  return result;
}

double pool_flops(const Shape& result, const Attributes& attributes) {
  return static_cast<double>(element_count(result)) *
         static_cast<double>(element_count(attributes.integers("window")));
}

std::vector<double> average_pool_divisors(const Shape& x, const Shape& y, const Attributes& attributes) {
  if (attributes.boolean("count_padding")) {
    const auto volume = static_cast<double>(element_count(attributes.integers("window")));
    return std::vector<double>(static_cast<size_t>(element_count(y)), volume);
  }
  std::vector<double> counts(static_cast<size_t>(element_count(y)), 0);
  walk_pool(x, y, attributes, [&](size_t window, int64_t, size_t) { ++counts[window]; });
  return counts;
}

std::vector<PoolCase> pool_cases() {
  const auto attributes = [](std::vector<int64_t> window, std::vector<int64_t> strides,
                             std::vector<int64_t> low, std::vector<int64_t> high) {
    return Attributes{{"window", std::move(window)},
                      {"strides", std::move(strides)},
                      {"padding_low", std::move(low)},
                      {"padding_high", std::move(high)}};
  };
  return {{{2, 6, 4, 3}, attributes({2, 2}, {2, 2}, {0, 0}, {0, 0})},
          {{2, 7, 6, 5}, attributes({3, 3}, {2, 2}, {1, 1}, {1, 1})},
          {{1, 5, 7, 2}, attributes({3, 2}, {1, 3}, {0, 1}, {2, 0})},
          {{1, 7, 7, 3}, attributes({2, 2}, {3, 3}, {0, 0}, {0, 0})},  // pixels that no window sees
          {{3, 9, 2}, attributes({4}, {2}, {3}, {1})},
          {{1, 3, 4, 5, 2}, attributes({2, 3, 2}, {1, 1, 2}, {1, 1, 0}, {0, 1, 1})}};
}

}  // namespace tessera::ops
