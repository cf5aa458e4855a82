// GridSample, AffineGrid, DeformConv.
#include "onnx/sampling.h"
#include "onnx/windows.h"

namespace tessera::onnx {
namespace {

void lower_grid_sample(LowerCall& call) {
  Value* x = call.operand(0);
  Value* grid = call.operand(1);  // [N, places..., axes], the last axis of the image first
  const int64_t rank = x->type().rank();
  const int64_t axes = rank - 2;
  call.require(axes >= 1 && extent(grid, rank - 1) == axes,
               "its grid is to have a coordinate for each spatial axis");
  std::string mode = call.text("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const bool aligns = call.integer("align_corners", 0) != 0;
  std::vector<Value*> coordinates;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const auto size = static_cast<double>(extent(x, axis + 2));
    const int64_t place = axes - 1 - axis;
    Value* given = squeeze(slice_axis(grid, rank - 1, place, place + 1), {rank - 1});
    Value* shares = ops::add(given, 1);  // of half the image
    coordinates.push_back(aligns ? ops::multiply(shares, (size - 1) / 2)
                                 : ops::multiply(ops::add(ops::multiply(shares, size), -1.0), 0.5));
  }
  call.result(0, channels_first(sample(x, coordinates, {mode, call.text("padding_mode", "zeros"), aligns})));
}

// From -1 to 1: the centers of the outermost pixels, or their edges.
std::vector<double> positions(int64_t count, bool aligns) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<double>(count);
    const auto x = static_cast<double>(i);
    values.push_back(aligns ? (count == 1 ? -1 : 2 * x / (n - 1) - 1) : (2 * x + 1) / n - 1);
  }
  return values;
}

void lower_affine_grid(LowerCall& call) {
  Value* theta = call.operand(0);  // [N, axes, axes + 1]
  const std::vector<int64_t> size = call.known_integers(1);
  const auto axes = static_cast<size_t>(extent(theta, 1));
  call.require(size.size() == axes + 2, "its size is to be [N, C, spatial...]");
  const bool aligns = call.integer("align_corners", 0) != 0;
  const Shape image(size.begin() + 2, size.end());
  const int64_t pixels = element_count(image);
  const std::vector<int64_t> strides = row_major_strides(image);
  Tensor points = Tensor::full(theta->data_type(), {static_cast<int64_t>(axes) + 1, pixels}, 1);
  for (size_t axis = 0; axis < axes; ++axis) {
    const std::vector<double> values = positions(image[axis], aligns);
    const auto row = static_cast<int64_t>(axes - 1 - axis);  // the last axis comes first
    for (int64_t i = 0; i < pixels; ++i)
      points.set(row * pixels + i, values[static_cast<size_t>(i / strides[axis] % image[axis])]);
  }
  Value* moved = transpose(ops::matmul(theta, ops::constant(call.graph(), points)), {0, 2, 1});
  Shape shape{size[0]};
  shape.insert(shape.end(), image.begin(), image.end());
  shape.push_back(static_cast<int64_t>(axes));
  call.result(0, reshape(moved, shape));
}

// Dai et al. 2017, "Deformable Convolutional Networks"; Zhu et al. 2019 for the mask.
void lower_deformable_convolution(LowerCall& call) {
  Value* x = call.operand(0);
  Value* weight = call.operand(1);
  const Shape image = shape_of(x);
  const Shape filter = shape_of(weight);
  call.require(image.size() == 4 && filter.size() == 4, "it takes images of two spatial axes");
  const Windows windows = windows_of(call, image, {filter[2], filter[3]});
  const int64_t taps = windows.taps();
  const int64_t offset_groups = call.integer("offset_group", 1);
  const int64_t groups = call.integer("group", 1);
  const int64_t n = image[0];
  const int64_t h = windows.counts[0];
  const int64_t w = windows.counts[1];
  const DataType type = x->data_type();
  Value* offsets = reshape(call.operand(2), {n, offset_groups, taps, 2, h, w});
  Value* mask = call.has(4) ? reshape(call.operand(4), {n, offset_groups, taps, h, w}) : nullptr;
  Tensor rows(type, {1, taps, h, w});
  Tensor columns(type, {1, taps, h, w});
  for (int64_t i = 0; i < rows.size(); ++i) {
    const int64_t tap = i / (h * w);
    const int64_t row =
        i / w % h * windows.strides[0] - windows.low[0] + tap / filter[3] * windows.dilations[0];
    const int64_t column =
        i % w * windows.strides[1] - windows.low[1] + tap % filter[3] * windows.dilations[1];
    rows.set(i, static_cast<double>(row));
    columns.set(i, static_cast<double>(column));
  }
  Graph& graph = call.graph();
  const int64_t channels = image[1] / offset_groups;
  std::vector<Value*> parts;
  for (int64_t group = 0; group < offset_groups; ++group) {
    Value* own = squeeze(slice_axis(offsets, 1, group, group + 1), {1});
    const auto moved = [&](int64_t axis, const Tensor& base) {
      return ops::add(squeeze(slice_axis(own, 2, axis, axis + 1), {2}), ops::constant(graph, base));
    };
    Value* sampled = sample(slice_axis(x, 1, group * channels, (group + 1) * channels),
                            {moved(0, rows), moved(1, columns)}, {});
    if (mask != nullptr)
      sampled = ops::multiply(sampled, unsqueeze(squeeze(slice_axis(mask, 1, group, group + 1), {1}), {4}));
    parts.push_back(sampled);
  }
  Value* sampled = parts.size() == 1 ? parts[0] : ops::concat(parts, 4);  // [n, taps, h, w, channels]
  const int64_t depth = image[1] / groups;
  std::vector<Value*> results;
  for (int64_t group = 0; group < groups; ++group) {
    Value* part = transpose(slice_axis(sampled, 4, group * depth, (group + 1) * depth), {0, 2, 3, 4, 1});
    Value* filters = slice_axis(weight, 0, group * filter[0] / groups, (group + 1) * filter[0] / groups);
    results.push_back(ops::matmul(reshape(part, {n * h * w, depth * taps}),
                                  reshape(filters, {filter[0] / groups, depth * taps}),
                                  {.transpose_b = true}));
  }
  Value* y = results.size() == 1 ? results[0] : ops::concat(results, 1);
  if (call.has(3)) y = ops::add(y, call.operand(3));
  call.result(0, channels_first(reshape(y, {n, h, w, filter[0]})));
}

const RuleRegistrations kRegistration{
    {.name = "GridSample", .lower = lower_grid_sample},
    {.name = "AffineGrid", .lower = lower_affine_grid},
    {.name = "DeformConv", .lower = lower_deformable_convolution},
};

}  // namespace
}  // namespace tessera::onnx
