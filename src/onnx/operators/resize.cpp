// Resize, Upsample: axis by axis, each result a weighted sum of a few places.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/lowering.h"

namespace tessera::onnx {
namespace {

struct Resizing {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string rounding = "round_prefer_floor";
  double cubic = -0.75;
  bool excludes_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

struct AxisPlan {
  int64_t axis = 0;
  int64_t before = 0;
  int64_t after = 0;
  double scale = 1;
  double start = 0;  // of the part that is resized, as shares of the axis
  double end = 1;
};

// Where the centre of a result lies in the operand.
double coordinate(const Resizing& resizing, const AxisPlan& plan, int64_t i) {
  const auto x = static_cast<double>(i);
  const auto before = static_cast<double>(plan.before);
  const auto after = static_cast<double>(plan.after);
  const double half_pixel = (x + 0.5) / plan.scale - 0.5;
  if (resizing.coordinates == "asymmetric") return x / plan.scale;
  if (resizing.coordinates == "pytorch_half_pixel") return plan.after > 1 ? half_pixel : 0;
  if (resizing.coordinates == "align_corners") {
    const double width = plan.scale * before;  // before it is rounded to pixels
    return width == 1 ? 0 : x * (before - 1) / (width - 1);
  }
  if (resizing.coordinates == "tf_crop_and_resize") {
    if (plan.after <= 1) return 0.5 * (plan.start + plan.end) * (before - 1);
    return plan.start * (before - 1) + x * (plan.end - plan.start) * (before - 1) / (after - 1);
  }
  if (resizing.coordinates == "half_pixel_symmetric") {
    const double adjustment = after / (plan.scale * before);
    return before / 2 * (1 - adjustment) + half_pixel;
  }
  return half_pixel;
}

int64_t nearest(const Resizing& resizing, double x) {
  if (resizing.rounding == "floor") return static_cast<int64_t>(std::floor(x));
  if (resizing.rounding == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (resizing.rounding == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));
}

// Keys 1981, "Cubic Convolution Interpolation for Digital Image Processing"; of linear interpolation a hat.
double kernel(const Resizing& resizing, double distance) {
  const double d = std::abs(distance);
  if (resizing.mode == "linear") return std::max(0.0, 1 - d);
  const double a = resizing.cubic;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// The places of the axis that each result is made of, and their weights, as many for each.
struct Taps {
  int64_t count = 0;
  std::vector<int64_t> places;  // [results, count]
  std::vector<double> weights;
};

Taps taps_of_axis(const Resizing& resizing, const AxisPlan& plan) {
  Taps taps;
  if (resizing.mode == "nearest") {
    taps.count = 1;
    for (int64_t i = 0; i < plan.after; ++i)
      taps.places.push_back(
          std::clamp<int64_t>(nearest(resizing, coordinate(resizing, plan, i)), 0, plan.before - 1));
    return taps;
  }
  const double shrink = resizing.antialias ? std::min(1.0, plan.scale) : 1.0;
  const double support = (resizing.mode == "linear" ? 1 : 2) / shrink;
  taps.count = 2 * static_cast<int64_t>(std::ceil(support));
  for (int64_t i = 0; i < plan.after; ++i) {
    const double x = coordinate(resizing, plan, i);
    const int64_t first = static_cast<int64_t>(std::floor(x)) - taps.count / 2 + 1;
    double sum = 0;
    for (int64_t tap = 0; tap < taps.count; ++tap) {
      const int64_t place = first + tap;
      const bool outside = place < 0 || place >= plan.before;
      const double weight = kernel(resizing, (static_cast<double>(place) - x) * shrink);
      taps.weights.push_back(outside && resizing.excludes_outside ? 0 : weight);
      taps.places.push_back(std::clamp<int64_t>(place, 0, plan.before - 1));
      sum += taps.weights.back();
    }
    if (sum == 0 || !(resizing.antialias || resizing.excludes_outside)) continue;
    for (auto weight = taps.weights.end() - taps.count; weight != taps.weights.end(); ++weight)
      *weight /= sum;
  }
  return taps;
}

constexpr int64_t kMostGathered = 4;  // more are a matrix product

Value* product_of_taps(Value* x, const AxisPlan& plan, const Taps& taps) {
  std::vector<double> matrix(static_cast<size_t>(plan.before * plan.after), 0);
  for (int64_t i = 0; i < plan.after; ++i) {
    for (int64_t tap = i * taps.count; tap < (i + 1) * taps.count; ++tap)
      matrix[static_cast<size_t>(i * plan.before + taps.places[static_cast<size_t>(tap)])] +=
          taps.weights[static_cast<size_t>(tap)];
  }
  Value* weights =
      ops::constant(x->graph(), Tensor::from_doubles(x->data_type(), {plan.after, plan.before}, matrix));
  const int64_t last = x->type().rank() - 1;
  std::vector<int64_t> to_last(static_cast<size_t>(last + 1));
  std::iota(to_last.begin(), to_last.end(), 0);
  std::swap(to_last[static_cast<size_t>(plan.axis)], to_last[static_cast<size_t>(last)]);
  Value* rows = transpose(x, to_last);
  if (rows->type().rank() == 1) rows = unsqueeze(rows, {0});
  Value* y = ops::matmul(rows, weights, {.transpose_b = true});
  if (last == 0) y = squeeze(y, {0});
  return transpose(y, to_last);
}

Value* resize_axis(Value* x, const Resizing& resizing, const AxisPlan& plan) {
  const Taps taps = taps_of_axis(resizing, plan);
  if (taps.count > kMostGathered) return product_of_taps(x, plan, taps);
  Value* sum = nullptr;
  for (int64_t tap = 0; tap < taps.count; ++tap) {
    std::vector<int64_t> places;
    std::vector<double> weights;
    for (int64_t i = 0; i < plan.after; ++i) {
      places.push_back(taps.places[static_cast<size_t>(i * taps.count + tap)]);
      if (!taps.weights.empty()) weights.push_back(taps.weights[static_cast<size_t>(i * taps.count + tap)]);
    }
    Value* part = ops::gather(x, integers(x->graph(), places), plan.axis);
    if (weights.empty()) return part;
    Shape shape(static_cast<size_t>(x->type().rank()), 1);
    shape[static_cast<size_t>(plan.axis)] = plan.after;
    part =
        ops::multiply(part, ops::constant(x->graph(), Tensor::from_doubles(x->data_type(), shape, weights)));
    sum = sum == nullptr ? part : ops::add(sum, part);
  }
  return sum;
}

// What lies outside of the part of an axis is not interpolated.
Value* with_extrapolation(Value* y, const Resizing& resizing, const AxisPlan& plan) {
  Tensor inside(DataType::boolean, {plan.after});
  bool all = true;
  for (int64_t i = 0; i < plan.after; ++i) {
    const double x = coordinate(resizing, plan, i);
    const bool is_inside = x >= 0 && x <= static_cast<double>(plan.before - 1);
    inside.set(i, is_inside ? 1 : 0);
    all = all && is_inside;
  }
  if (all) return y;
  Shape shape(static_cast<size_t>(y->type().rank()), 1);
  shape[static_cast<size_t>(plan.axis)] = plan.after;
  return ops::select(ops::constant(y->graph(), inside.reshape(shape)), y,
                     number(y->graph(), y->data_type(), resizing.extrapolation));
}

void resize_with(LowerCall& call, const Resizing& resizing, const std::vector<AxisPlan>& plans) {
  const DataType type = call.type(0).data_type;
  Value* x = call.operand(0);
  const bool interpolates = resizing.mode != "nearest";
  if (interpolates && type != DataType::fp64) x = ops::cast(x, DataType::fp32);
  for (const AxisPlan& plan : plans) {
    call.require(plan.after >= 0 && plan.before > 0 && plan.scale > 0, "an axis has no such extent");
    const bool same =
        plan.after == plan.before && plan.scale == 1 && resizing.coordinates != "tf_crop_and_resize";
    if (!same) x = resize_axis(x, resizing, plan);
  }
  for (const AxisPlan& plan : plans) {
    if (resizing.coordinates == "tf_crop_and_resize") x = with_extrapolation(x, resizing, plan);
  }
  call.result(0, ops::cast(x, type));
}

int64_t scaled(int64_t extent, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<double>(extent) * scale));
}

std::vector<double> known_reals(LowerCall& call, size_t operand) {
  return call.has(operand) && call.type(operand).element_count() > 0 ? call.known(operand).to_doubles()
                                                                     : std::vector<double>{};
}

// Sizes that keep the ratio of the axes: the smallest scale, or the largest.
void keep_ratio(const std::string& policy, std::vector<AxisPlan>& plans) {
  if (policy == "stretch" || plans.empty()) return;
  double scale = plans[0].scale;
  for (const AxisPlan& plan : plans)
    scale = policy == "not_larger" ? std::min(scale, plan.scale) : std::max(scale, plan.scale);
  for (AxisPlan& plan : plans) {
    plan.scale = scale;
    plan.after = static_cast<int64_t>(std::floor(scale * static_cast<double>(plan.before) + 0.5));
  }
}

void lower_resize(LowerCall& call) {
  const Shape shape = call.type(0).static_shape();
  Resizing resizing;
  resizing.mode = call.text("mode", "nearest");
  resizing.coordinates = call.text("coordinate_transformation_mode", "half_pixel");
  resizing.rounding = call.text("nearest_mode", "round_prefer_floor");
  resizing.cubic = call.real("cubic_coeff_a", -0.75);
  resizing.excludes_outside = call.integer("exclude_outside", 0) != 0;
  resizing.antialias = call.integer("antialias", 0) != 0;
  resizing.extrapolation = call.real("extrapolation_value", 0);
  std::vector<int64_t> axes = call.integers("axes");
  if (axes.empty()) {
    axes.resize(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const std::vector<double> roi = known_reals(call, 1);
  const std::vector<double> scales = known_reals(call, 2);
  const std::vector<double> sizes = known_reals(call, 3);
  call.require(scales.size() == axes.size() || sizes.size() == axes.size(),
               "there is to be a scale or a size for each axis");
  std::vector<AxisPlan> plans;
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisPlan plan{.axis = axis_of(call, axes[i], std::ssize(shape))};
    plan.before = shape[static_cast<size_t>(plan.axis)];
    call.require(plan.before > 0, "an empty axis cannot be resized");
    plan.scale = sizes.empty() ? scales[i] : sizes[i] / static_cast<double>(plan.before);
    plan.after = sizes.empty() ? scaled(plan.before, plan.scale) : static_cast<int64_t>(sizes[i]);
    if (roi.size() == 2 * axes.size()) {
      plan.start = roi[i];
      plan.end = roi[i + axes.size()];
    }
    plans.push_back(plan);
  }
  if (!sizes.empty()) keep_ratio(call.text("keep_aspect_ratio_policy", "stretch"), plans);
  resize_with(call, resizing, plans);
}

// Upsample, and Resize before opset 11.
void lower_upsample(LowerCall& call) {
  const Shape shape = call.type(0).static_shape();
  Resizing resizing;
  resizing.mode = call.text("mode", "nearest");
  resizing.coordinates = "asymmetric";
  resizing.rounding = "floor";
  const std::vector<double> scales = call.has(1) ? call.known(1).to_doubles() : call.reals("scales");
  call.require(scales.size() == shape.size(), "there is to be a scale for each axis");
  std::vector<AxisPlan> plans;
  for (size_t i = 0; i < scales.size(); ++i)
    plans.push_back({.axis = static_cast<int64_t>(i),
                     .before = shape[i],
                     .after = scaled(shape[i], scales[i]),
                     .scale = scales[i]});
  resize_with(call, resizing, plans);
}

const RuleRegistrations kRegistration{
    {.name = "Resize", .since = 11, .lower = lower_resize},
    {.name = "Resize", .until = 10, .lower = lower_upsample},
    {.name = "Upsample", .lower = lower_upsample},
};

}  // namespace
}  // namespace tessera::onnx
