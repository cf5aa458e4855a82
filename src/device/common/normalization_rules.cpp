#include "tessera/device/common/normalization_rules.h"

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::backend {
namespace {

// The view in which a norm works: x as [outer, rows, groups, channels], mean over rows and channels.
struct Layout {
  SymbolicShape x;
  SymbolicShape statistics;  // broadcasts against x
  SymbolicShape scale;       // broadcasts against x
  std::vector<int64_t> mean_axes;
  std::vector<int64_t> scale_axes;  // over which gradients of scale are summed
};

Layout layer_layout(const Shape& shape, int64_t axes) {
  const auto split = static_cast<std::ptrdiff_t>(shape.size()) - axes;
  const int64_t rows = element_count(Shape(shape.begin(), shape.begin() + split));
  const int64_t row = element_count(Shape(shape.begin() + split, shape.end()));
  return {.x = {rows, row}, .statistics = {rows, 1}, .scale = {1, row}, .mean_axes = {1}, .scale_axes = {0}};
}

Layout group_layout(const Shape& shape, int64_t groups) {
  const int64_t images = shape.front();
  const int64_t channels = shape.back() / groups;
  const int64_t pixels = element_count(Shape(shape.begin() + 1, shape.end() - 1));
  return {.x = {images, pixels, groups, channels},
          .statistics = {images, 1, groups, 1},
          .scale = {1, 1, groups, channels},
          .mean_axes = {1, 3},
          .scale_axes = {0, 1}};
}

Value* widened(Value* x, const Layout& layout, DataType type) {
  return ops::cast(ops::reshape(x, layout.x), type);
}

// x without its mean, as the type of statistics. Not centered, the mean is null.
Value* deviation_of(Value* x, const Layout& layout, DataType type, Value* mean) {
  Value* wide = widened(x, layout, type);
  return mean == nullptr ? wide : ops::subtract(wide, mean);
}

bool is_centered(const Node& node) {
  return !node.attributes().contains("centered") || node.attributes().boolean("centered");
}

// inputs: x, scale and, where there is one, bias; results: y, mean, inverse deviation.
std::vector<Value*> forward(const Node& node, const std::vector<Value*>& inputs, const Layout& layout) {
  const DataType type = inputs[1]->data_type();
  const ops::ReduceOptions over{.axes = layout.mean_axes, .keep_dimensions = true};
  Value* x = inputs[0];
  Value* mean = is_centered(node) ? ops::reduce_mean(widened(x, layout, type), over) : nullptr;
  Value* variance = ops::reduce_mean(ops::square(deviation_of(x, layout, type, mean)), over);
  Value* inverse = ops::rsqrt(ops::add(variance, node.attributes().real("epsilon")));
  Value* normalized = ops::multiply(deviation_of(x, layout, type, mean), inverse);
  Value* y = ops::multiply(normalized, ops::reshape(inputs[1], layout.scale));
  if (inputs.size() > 2) y = ops::add(y, ops::reshape(inputs[2], layout.scale));
  const SymbolicShape& statistics = node.output(1)->shape();
  return {ops::reshape(ops::cast(y, x->data_type()), x->shape()),
          ops::reshape(mean != nullptr ? mean : ops::zeros_like(inverse), statistics),
          ops::reshape(inverse, statistics)};
}

// inputs: dy, x, scale, mean, inverse deviation; results: dx, dscale, dbias. With g = dy scale and n = the
// normalized x: dx = inverse (g - mean(g) - n mean(g n)), not centered without mean(g).
std::vector<Value*> backward(const Node& node, const std::vector<Value*>& inputs, const Layout& layout) {
  const DataType type = inputs[2]->data_type();
  const ops::ReduceOptions over{.axes = layout.mean_axes, .keep_dimensions = true};
  const ops::ReduceOptions rows{.axes = layout.scale_axes};
  Value* scale = ops::reshape(inputs[2], layout.scale);
  Value* mean = is_centered(node) ? ops::reshape(inputs[3], layout.statistics) : nullptr;
  Value* inverse = ops::reshape(inputs[4], layout.statistics);
  const auto dy = [&] { return widened(inputs[0], layout, type); };
  const auto normalized = [&] { return ops::multiply(deviation_of(inputs[1], layout, type, mean), inverse); };
  Value* mean_gn = ops::reduce_mean(ops::multiply(ops::multiply(dy(), scale), normalized()), over);
  Value* g = ops::multiply(dy(), scale);
  if (mean != nullptr) g = ops::subtract(g, ops::reduce_mean(ops::multiply(dy(), scale), over));
  Value* rest = ops::subtract(g, ops::multiply(normalized(), mean_gn));
  Value* dx = ops::cast(ops::multiply(rest, inverse), inputs[1]->data_type());
  Value* dscale = ops::reduce_sum(ops::multiply(dy(), normalized()), rows);
  Value* dbias = ops::reduce_sum(dy(), rows);
  return {ops::reshape(dx, inputs[1]->shape()), ops::reshape(dscale, inputs[2]->shape()),
          ops::reshape(dbias, inputs[2]->shape())};
}

Layout layout_of(const Node& node, size_t x) {
  const Shape shape = node.input(x)->type().static_shape();
  const Attributes& attributes = node.attributes();
  return attributes.contains("groups") ? group_layout(shape, attributes.integer("groups"))
                                       : layer_layout(shape, attributes.integer("axes"));
}

std::vector<Value*> norm(const Node& node, const std::vector<Value*>& inputs) {
  return forward(node, inputs, layout_of(node, 0));
}

std::vector<Value*> gradient(const Node& node, const std::vector<Value*>& inputs) {
  return backward(node, inputs, layout_of(node, 1));
}

}  // namespace

const std::map<std::string, GraphRule>& normalization_rules() {
  static const std::map<std::string, GraphRule> rules{{"layer_norm", norm},
                                                      {"layer_norm_gradient", gradient},
                                                      {"group_norm", norm},
                                                      {"group_norm_gradient", gradient}};
  return rules;
}

}  // namespace tessera::backend
