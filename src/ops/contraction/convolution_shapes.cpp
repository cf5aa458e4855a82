#include "ops/contraction/convolution_shapes.h"

#include "tessera/base/error.h"

namespace tessera::ops {

std::vector<AttributeSpecification> convolution_attribute_list() {
  return {
      {"strides", AttributeKind::integers, {}, "Step of the window per spatial axis."},
      {"padding_low", AttributeKind::integers, {}, "Zeros before the image per spatial axis."},
      {"padding_high", AttributeKind::integers, {}, "Zeros after the image per spatial axis."},
      {"dilations", AttributeKind::integers, {}, "Distance of the window's elements per spatial axis."},
      {"groups", AttributeKind::integer, 1, "Channels are divided into so many independent convolutions."}};
}

ConvolutionOptions convolution_options(const Attributes& attributes) {
  return {.strides = attributes.integers("strides"),
          .padding_low = attributes.integers("padding_low"),
          .padding_high = attributes.integers("padding_high"),
          .dilations = attributes.integers("dilations"),
          .groups = attributes.integer("groups")};
}

WindowOptions convolution_windows(const SymbolicShape& weight, const Attributes& attributes) {
  require(weight.size() >= 2, ErrorCode::invalid_graph, "weight must be [K, spatial..., C/groups]");
  return {.window = to_static(spatial_shape(weight)),
          .strides = attributes.integers("strides"),
          .padding_low = attributes.integers("padding_low"),
          .padding_high = attributes.integers("padding_high"),
          .dilations = attributes.integers("dilations")};
}

SymbolicShape convolution_result(const SymbolicShape& x, const SymbolicShape& weight,
                                 const Attributes& attributes) {
  require(x.size() >= 3 && x.size() <= 5, ErrorCode::invalid_graph,
          "x must be [N, spatial..., C] with one to three spatial axes");
  require(weight.size() == x.size(), ErrorCode::invalid_graph,
          "weight must be [K, spatial..., C/groups] with as many spatial axes as x");
  const WindowOptions windows = convolution_windows(weight, attributes);
  check_windows(windows, static_cast<int64_t>(x.size()) - 2);
  const int64_t groups = attributes.integer("groups");
  require(groups >= 1, ErrorCode::invalid_graph, "groups must be at least 1, got {}", groups);
  require(x.back() == weight.back() * groups, ErrorCode::invalid_graph,
          "x has {} channels, but {} groups of a weight over {} channels need {}", x.back().to_string(),
          groups, weight.back().to_string(), (weight.back() * groups).to_string());
  require(weight[0].divide_exactly(groups).has_value(), ErrorCode::invalid_graph,
          "{} output channels cannot be divided into {} groups", weight[0].to_string(), groups);
  SymbolicShape result = window_counts(spatial_shape(x), windows);
  result.insert(result.begin(), x[0]);
  result.push_back(weight[0]);
  return result;
}

double convolution_flops(const Shape& weight, const Shape& y) {
  const int64_t products = element_count(weight) / std::max<int64_t>(weight[0], 1);
  return 2.0 * static_cast<double>(products) * static_cast<double>(element_count(y));
}

std::vector<ConvolutionCase> convolution_cases() {
  const auto attributes = [](std::vector<int64_t> strides, std::vector<int64_t> low,
                             std::vector<int64_t> high, std::vector<int64_t> dilations, int64_t groups = 1) {
    return Attributes{{"strides", std::move(strides)},
                      {"padding_low", std::move(low)},
                      {"padding_high", std::move(high)},
                      {"dilations", std::move(dilations)},
                      {"groups", groups}};
  };
  return {
      {{2, 5, 6, 3}, {4, 3, 3, 3}, attributes({1, 1}, {1, 1}, {1, 1}, {1, 1})},
      {{1, 4, 4, 5}, {7, 1, 1, 5}, attributes({1, 1}, {0, 0}, {0, 0}, {1, 1})},
      {{2, 7, 6, 3}, {2, 3, 3, 3}, attributes({2, 2}, {1, 0}, {1, 2}, {1, 1})},     // strides, uneven padding
      {{1, 8, 7, 2}, {3, 3, 2, 2}, attributes({1, 2}, {2, 1}, {2, 1}, {2, 3})},     // dilations
      {{2, 5, 5, 4}, {6, 3, 3, 2}, attributes({1, 1}, {1, 1}, {1, 1}, {1, 1}, 2)},  // groups
      {{1, 5, 5, 3},
       {6, 3, 3, 1},
       attributes({2, 2}, {1, 1}, {1, 1}, {1, 1}, 3)},                           // depthwise, two per channel
      {{1, 6, 6, 2}, {3, 2, 2, 2}, attributes({3, 3}, {0, 0}, {0, 0}, {1, 1})},  // pixels that nothing reads
      {{2, 11, 3}, {2, 4, 3}, attributes({2}, {3}, {1}, {1})},
      {{1, 3, 4, 5, 2}, {3, 2, 3, 3, 2}, attributes({1, 2, 1}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1})},
  };
}

}  // namespace tessera::ops
