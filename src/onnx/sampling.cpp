#include "onnx/sampling.h"

#include "onnx/windows.h"

namespace tessera::onnx {
namespace {

// Back and forth between two borders.
Value* reflect(Value* x, double low, double high) {
  const double width = high - low;
  if (width <= 0) return ops::constant_like(x, low);
  Value* distance = ops::absolute(ops::add(x, -low));
  Value* periods = ops::floor(ops::multiply(distance, 1 / (2 * width)));
  Value* rest = ops::subtract(distance, ops::multiply(periods, 2 * width));
  Value* folded = ops::minimum(rest, ops::subtract(2 * width, rest));
  return ops::add(folded, low);
}

struct AxisTap {
  Value* place;   // int64, within the axis
  Value* weight;  // null for 1
};

Value* cubic_weight(Value* distance) {
  // Keys 1981 with a = -0.75.
  constexpr double kA = -0.75;
  Value* d = ops::absolute(distance);
  const auto polynomial = [&](double c3, double c2, double c1, double c0) {
    Value* sum = ops::add(ops::multiply(d, c3), c2);
    sum = ops::add(ops::multiply(sum, d), c1);
    return ops::add(ops::multiply(sum, d), c0);
  };
  Value* one = ops::constant_like(d, 1);
  return ops::select(ops::less_equal(d, one), polynomial(kA + 2, -(kA + 3), 0, 1),
                     polynomial(kA, -5 * kA, 8 * kA, -4 * kA));
}

std::vector<AxisTap> taps_of_coordinate(Value* x, int64_t size, const Sampling& sampling) {
  const double low = sampling.aligns_corners ? 0 : -0.5;
  const auto last = static_cast<double>(size - 1);
  const double high = sampling.aligns_corners ? last : last + 0.5;
  const bool reflects = sampling.padding == "reflection";
  if (sampling.mode == "nearest") x = ops::round(x);
  if (sampling.padding == "border") x = ops::clip(x, 0, last);
  if (reflects) x = reflect(x, low, high);
  const int first = sampling.mode == "cubic" ? -1 : 0;
  const int count = sampling.mode == "cubic" ? 4 : sampling.mode == "linear" ? 2 : 1;
  Value* base = sampling.mode == "nearest" ? ops::round(x) : ops::floor(x);
  std::vector<AxisTap> taps;
  for (int tap = first; tap < first + count; ++tap) {
    Value* place = ops::add(base, static_cast<double>(tap));
    Value* distance = ops::subtract(x, place);
    Value* weight = nullptr;
    if (sampling.mode == "linear") weight = ops::subtract(1, ops::absolute(distance));
    if (sampling.mode == "cubic") weight = cubic_weight(distance);
    if (reflects) place = ops::floor(reflect(place, low, high));
    if (sampling.padding == "zeros") {
      Value* inside = ops::logical_and(ops::greater_equal(place, ops::constant_like(place, 0)),
                                       ops::less_equal(place, ops::constant_like(place, last)));
      Value* factor = ops::cast(inside, place->data_type());
      weight = weight == nullptr ? factor : ops::multiply(weight, factor);
    }
    taps.push_back({ops::cast(ops::clip(place, 0, last), DataType::int64), weight});
  }
  return taps;
}

}  // namespace

Value* sample(Value* x, const std::vector<Value*>& coordinates, const Sampling& sampling) {
  const Shape shape = shape_of(x);
  Graph& graph = x->graph();
  const int64_t pixels = product(shape, 2, shape.size());
  Value* rows = reshape(channels_last(x), {shape[0] * pixels, shape[1]});
  const Shape places = shape_of(coordinates[0]);
  require(places[0] == shape[0], ErrorCode::invalid_graph, "there are places for {} images, and {} images",
          places[0], shape[0]);
  Value* image =
      ops::multiply(counted(graph, places, 0), number(graph, DataType::int64, static_cast<double>(pixels)));
  std::vector<std::vector<AxisTap>> taps;
  int64_t combinations = 1;
  for (size_t axis = 0; axis < coordinates.size(); ++axis) {
    taps.push_back(taps_of_coordinate(coordinates[axis], shape[axis + 2], sampling));
    combinations *= std::ssize(taps.back());
  }
  Value* sum = nullptr;
  for (int64_t i = 0; i < combinations; ++i) {
    Value* place = nullptr;
    Value* weight = nullptr;
    int64_t rest = i;
    for (size_t axis = 0; axis < taps.size(); ++axis) {
      const AxisTap& tap = taps[axis][static_cast<size_t>(rest % std::ssize(taps[axis]))];
      rest /= std::ssize(taps[axis]);
      Value* before =
          place == nullptr
              ? nullptr
              : ops::multiply(place, number(graph, DataType::int64, static_cast<double>(shape[axis + 2])));
      place = before == nullptr ? tap.place : ops::add(before, tap.place);
      if (tap.weight != nullptr) weight = weight == nullptr ? tap.weight : ops::multiply(weight, tap.weight);
    }
    Value* part = ops::gather(rows, ops::add(image, place), 0);
    if (weight != nullptr) {
      Value* factor = ops::cast(unsqueeze(weight, {weight->type().rank()}), part->data_type());
      part = ops::multiply(part, factor);
    }
    sum = sum == nullptr ? part : ops::add(sum, part);
  }
  return sum;
}

}  // namespace tessera::onnx
