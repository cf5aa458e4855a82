#include "support/decisive_inputs.h"

#include <algorithm>
#include <cmath>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"

namespace tessera::testing {
namespace {

// The last place along all of the axes, for every second combination of the others.
std::vector<int64_t> last_places(const Shape& shape, std::vector<int64_t> axes) {
  const auto rank = static_cast<int64_t>(shape.size());
  for (int64_t& axis : axes) axis = (axis + rank) % rank;
  const auto is_reduced = [&](size_t axis) {
    return axes.empty() || std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
  };
  std::vector<int64_t> places;
  int64_t rows = 0;
  for (int64_t element = 0; element < element_count(shape); ++element) {
    int64_t rest = element;
    bool is_last = true;
    for (size_t axis = shape.size(); axis-- > 0;) {
      is_last = is_last && (!is_reduced(axis) || rest % shape[axis] == shape[axis] - 1);
      rest /= shape[axis];
    }
    if (is_last && rows++ % 2 == 0) places.push_back(element);
  }
  return places;
}

// Above (or below) all that tests draw.
double extreme_of(const Tensor& x, bool largest) {
  double result = x.at(0);
  for (double value : x.to_doubles()) result = largest ? std::max(result, value) : std::min(result, value);
  return x.data_type() == DataType::uint8 && !largest ? 0 : largest ? result + 1 : result - 1;
}

// Factors of magnitude 1 or about that beside the one that counts, or the product would overflow or vanish.
void make_product_decisive(Tensor& x, const std::vector<int64_t>& places) {
  const DataType type = x.data_type();
  for (int64_t i = 0; i < x.size(); ++i) {
    const double sign = i % 3 == 0 && type != DataType::uint8 ? -1 : 1;
    x.set(i, is_floating(type) ? sign * (1 + 0.05 * std::sin(static_cast<double>(i))) : sign);
  }
  for (int64_t place : places) x.set(place, is_floating(type) ? 1.25 : 3);
}

}  // namespace

void make_decisive(const Node& node, std::vector<Tensor>& inputs) {
  const std::string& name = node.operator_name();
  if (inputs.empty() || inputs[0].size() == 0) return;
  Tensor& x = inputs[0];
  if (name == "reduce_max" || name == "reduce_min" || name == "reduce_product") {
    const std::vector<int64_t> places = last_places(x.shape(), node.attributes().integers("axes"));
    if (name == "reduce_product") return make_product_decisive(x, places);
    const double extreme = extreme_of(x, name == "reduce_max");
    for (int64_t place : places) x.set(place, extreme);
  } else if (node.schema().traits.reduction != ReductionKind::none && !is_floating(x.data_type())) {
    for (int64_t place : last_places(x.shape(), node.attributes().integers("axes"))) x.set(place, 3);
  } else if (name.ends_with("softmax") || name.starts_with("cross_entropy")) {
    const int64_t axis = name.ends_with("softmax") ? node.attributes().integer("axis") : 1;
    // One of a thousand classes is to have a tenth of the sum.
    const double extreme = extreme_of(x, true) + 4;
    const int64_t columns = x.shape().back();
    const int64_t unread =
        name.ends_with("softmax") ? 0 : columns - ops::class_count(node.attributes(), columns);
    for (int64_t place : last_places(x.shape(), {axis})) x.set(place - unread, extreme);
  } else if (name.ends_with("equal") && inputs[1].size() > 0) {
    // The first elements meet whatever is broadcast.
    for (int64_t i = 0; i < (x.size() == inputs[1].size() ? x.size() : 1); i += 3) inputs[1].set(i, x.at(i));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data_type() != DataType::boolean) continue;
    for (int64_t e = 0; e < inputs[i].size(); ++e) inputs[i].set(e, ((e >> i) & 1) == 0 ? 1 : 0);
  }
}

}  // namespace tessera::testing
